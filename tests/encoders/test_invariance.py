"""Invariance is law: an embedding depends on its text alone. Every pooler and attn inherits these tests."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from encoders.attention import sight
from encoders.loading import build_encoder, build_tokenizer, untrained
from encoders.precision import PRECISIONS
from encoders.tokens import TextTokenizer
from tests.cells import CELLS

TEXTS = [
    "the sum of two arrays",
    "a new array is returned with the same shape",
    "type",
    "the shape and the type of the first argument is the same as that of the sum of the two arrays returned",
    "two arrays of the same shape",
]
FLOAT32 = 2e-6  # of unit vectors; measured 3e-7
BF16 = 1e-2  # bf16 keeps 8 bits, and sums in another order move the last; measured 1.5e-3 on the embedded model


def encoder_of(cfg, precision="fp32"):
    encoder = build_encoder(cfg, PRECISIONS[precision], torch.device("cpu"))
    return encoder.eval(), build_tokenizer(cfg, 128)


def embed(encoder, tokenizer, texts, multiple_of=1):
    with torch.no_grad():
        return encoder(tokenizer.batch(tokenizer(texts), multiple_of))


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", FLOAT32), ("mixed", BF16)])
def test_padding_side_width_and_batch_mates(compose_cell, pooler, attn, precision, tolerance):
    encoder, right = encoder_of(compose_cell(pooler, attn), precision)
    left = TextTokenizer(right.tokenizer, right.max_length, "left")
    alone = torch.cat([embed(encoder, right, [t]) for t in TEXTS])
    for tokenizer in (left, right):
        together = embed(encoder, tokenizer, TEXTS)
        assert together.dtype == torch.float32
        assert (together - alone).abs().max() < tolerance
        assert (embed(encoder, tokenizer, TEXTS, multiple_of=8) - alone).abs().max() < tolerance
        backwards = embed(encoder, tokenizer, TEXTS[::-1]).flip(0)
        assert (backwards - alone).abs().max() < tolerance


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_any_token_budget_and_repeats(compose_cell, pooler, attn):
    wide = untrained(compose_cell(pooler, attn, "token_budget=4096"))
    narrow = untrained(compose_cell(pooler, attn, "token_budget=1"))
    texts = [*TEXTS, TEXTS[0]]
    np.testing.assert_allclose(wide.encode(texts), narrow.encode(texts), atol=FLOAT32)
    assert wide.meter.texts == len(TEXTS), "a repeated text is run once"


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_sdpa_equals_eager(compose_cell, pooler, attn):
    results = []
    for kernel in ("sdpa", "eager"):
        encoder, tokenizer = encoder_of(compose_cell(pooler, attn, f"model.attn_implementation={kernel}"))
        results.append(embed(encoder, tokenizer, TEXTS))
    assert (results[0] - results[1]).abs().max() < FLOAT32


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_padding_never_reaches_the_vector(compose_cell, pooler, attn):
    """Other ids under the padding change nothing: the mask comes from lengths, not from ids."""
    encoder, tokenizer = encoder_of(compose_cell(pooler, attn))
    batch = tokenizer.batch(tokenizer(TEXTS))
    ids = batch.input_ids.clone()
    ids[batch.roles == 0] = 77
    with torch.no_grad():
        assert torch.equal(encoder(batch), encoder(replace(batch, input_ids=ids)))


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
def test_sight_is_the_literal_matrix(compose_cell, kernel):
    wanted = {"causal": torch.ones(6, 6).tril().bool(), "bi": torch.ones(6, 6).bool()}
    for attn, matrix in wanted.items():
        encoder, _ = encoder_of(compose_cell("eos", attn, f"model.attn_implementation={kernel}"))
        assert torch.equal(sight(encoder.backbone), matrix)


def test_real_decoder_left_equals_right(compose_cell, shared_data):
    for pooler, attn in CELLS:
        cfg = compose_cell(pooler, attn, f"model.path={shared_data}/models/stories260K", "max_length=64")
        encoder, right = encoder_of(cfg)
        left = TextTokenizer(right.tokenizer, right.max_length, "left")
        alone = torch.cat([embed(encoder, right, [t]) for t in TEXTS])
        assert (embed(encoder, left, TEXTS) - alone).abs().max() < FLOAT32, (pooler, attn)
