"""An embedding depends on its text alone: on no padding, batch mate, order, batch size or attention kernel."""

from dataclasses import replace

import pytest
import torch

from cli.errors import UserError
from encoders.loading import untrained
from encoders.text_encoder import TextEncoder
from encoders.tokens import TextTokenizer
from tests.cells import CONTRACT, reads_routers
from tests.contract.conftest import FLOAT32, TEXTS, apart, embed

MATES = ["sum", "a new array of the same shape as the type of its first argument, returned with the two arrays"]
# bf16 keeps 8 bits. Another padding or another batch is another shape of product, whose sums may run in another order;
# where that tips a rounding the entry moves by 2^-8 of itself, and the layers above carry it on. Equality cannot be
# had in bf16; what can be held is that the difference stays that of a rounding. Measured over all cells, on a CPU with
# bf16 instructions: with sdpa 5.3e-3 (2.2e-3 on the bundled base model); with eager 1.2e-7, since there the padding
# adds exact zeros to sums whose order stays.
BATCHED = {"fp32": FLOAT32, "mixed": 1.5e-2, "bf16": 1.5e-2}
# Two kernels round at different places (eager rounds scores and weights to bf16, sdpa keeps them in float32):
# measured 9.7e-3 (3.8e-3 on the bundled base model). bf16 itself is up to 1.3e-2 from float32.
KERNELS = {"fp32": FLOAT32, "mixed": 2e-2, "bf16": 2e-2}
# A mixture of experts is not continuous: where a rounding tips which expert a token gets, its state jumps. Measured
# 4.4e-2 in bf16 on the small one.
TIPPED = {"fp32": FLOAT32, "mixed": 0.1, "bf16": 0.1}
PRECISIONS = list(BATCHED)
KINDS = ("sdpa", "eager", "unpadded")


def arranged(encoder, right):
    """Yield (name, vectors of TEXTS) for every way in which the program may come to embed them."""
    for side in ("right", "left"):
        tokenizer = TextTokenizer(right.tokenizer, right.max_length, side, right.template)
        yield f"{side} padding", embed(encoder, tokenizer, TEXTS)
        yield f"{side}, width a multiple of 8", embed(encoder, tokenizer, TEXTS, multiple_of=8)
        yield f"{side}, backwards", embed(encoder, tokenizer, TEXTS[::-1]).flip(0)
        yield f"{side}, with batch mates", embed(encoder, tokenizer, [*MATES, *TEXTS])[len(MATES) :]
        yield f"{side}, two at a time", torch.cat([embed(encoder, tokenizer, TEXTS[i : i + 2]) for i in (0, 2, 4)])
    for budget in (1, 40, 4096):
        shuffled = [TEXTS[i] for i in (3, 0, 4, 1, 2, 0)]
        vectors = torch.from_numpy(TextEncoder(encoder, right, "", budget).encode(shuffled))
        yield f"token budget {budget}", vectors[[1, 3, 4, 0, 2]]
        yield f"token budget {budget}, repeated", torch.cat([vectors[5:6], vectors[[3, 4, 0, 2]]])


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
@pytest.mark.parametrize(("precision", "kernel"), [(p, k) for p in PRECISIONS for k in KINDS])
def test_alone_or_in_any_batch(encoder_of, pooler, attn, precision, kernel):
    encoder, tokenizer = encoder_of(pooler, attn, precision, kernel)
    alone = torch.cat([embed(encoder, tokenizer, [t]) for t in TEXTS])
    assert alone.dtype == torch.float32
    assert torch.allclose(alone.norm(dim=1), torch.ones(len(TEXTS)))
    moved = {name: apart(vectors, alone) for name, vectors in arranged(encoder, tokenizer)}
    assert max(moved.values()) < BATCHED[precision], moved
    assert torch.pdist(alone, p=torch.inf).min() > 0.1, "texts so close together that the tolerance proves nothing"


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_any_kernel(encoder_of, pooler, attn, precision):
    vectors = {}
    for kernel in KINDS:
        encoder, tokenizer = encoder_of(pooler, attn, precision, kernel)
        assert encoder.backbone.config._attn_implementation == kernel
        vectors[kernel] = embed(encoder, tokenizer, TEXTS)
    bound = (TIPPED if reads_routers(pooler) else KERNELS)[precision]
    assert apart(vectors["sdpa"], vectors["eager"]) < bound
    assert apart(vectors["unpadded"], vectors["eager"]) < bound


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_same_batch_is_bit_equal_whatever_stands_under_its_padding(encoder_of, pooler, attn, precision):
    """The mask comes from lengths, not from ids; and where the shape is the same, so are the roundings."""
    encoder, tokenizer = encoder_of(pooler, attn, precision)
    batch = tokenizer.batch(tokenizer(TEXTS))
    assert (batch.roles == 0).any()
    other = replace(batch, input_ids=batch.input_ids.masked_fill(batch.roles == 0, 77))
    with torch.no_grad():
        assert torch.equal(encoder(batch), encoder(other))


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
def test_each_precision_is_what_it_says(encoder_of, pooler, attn):
    """Otherwise the bounds above would be held by float32 three times."""
    exact, mixed, half = (embed(*encoder_of(pooler, attn, precision), TEXTS) for precision in PRECISIONS)
    assert 1e-4 < apart(exact, mixed) < 0.1
    assert 1e-4 < apart(exact, half) < 0.1
    weights = {p: {w.dtype for w in encoder_of(pooler, attn, p)[0].backbone.parameters()} for p in PRECISIONS}
    assert weights == {"fp32": {torch.float32}, "mixed": {torch.float32}, "bf16": {torch.bfloat16}}


def test_a_repeated_text_is_run_once(encoder_of):
    encoder = TextEncoder(*encoder_of("mean", "bi"), "", 4096)
    encoder.encode([*TEXTS, TEXTS[0]])
    assert encoder.meter.texts == len(TEXTS)


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
def test_a_decoder_of_the_hub(cell, hub_model, pooler, attn):
    path = str(hub_model)
    if reads_routers(pooler):
        with pytest.raises(UserError, match="this decoder is dense"):
            untrained(cell(pooler, attn, {"model.path": path}))
        return
    wide, narrow = (
        untrained(cell(pooler, attn, {"model.path": path, "token_budget": budget, "padding_side": side}))
        for budget, side in ((4096, "left"), (1, "right"))
    )
    assert apart(torch.from_numpy(wide.encode(TEXTS)), torch.from_numpy(narrow.encode(TEXTS))) < FLOAT32
