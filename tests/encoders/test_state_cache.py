"""The cache of states against transformers' own `hidden_states`, text by text; its name and size; what it refuses."""

import pytest
import torch
from transformers import AutoModel

from cli.errors import UserError
from encoders.frozen import GIB, SCALE, STATES, CachedEncoder, _mapped, compute_states, open_states
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import PRECISIONS
from encoders.tokens import Batch, TextTokenizer

TEXTS = ["the sum of two arrays", "its first argument", "a new array with the same shape and type of its argument"]
ALL = "pooler.tokens=all"
CPU = torch.device("cpu")
HALF = 2**-11  # the largest relative error of rounding to 11 bits


@pytest.fixture
def opened(compose_cell, tmp_path):
    """Make a cached encoder with its tokenizer: opened("multilayer", "bi", "max_length=20")."""

    def make(pooler="multilayer", attn="bi", *words) -> tuple[CachedEncoder, TextTokenizer]:
        cfg = compose_cell(pooler, attn, *words) | {"cache_dir": str(tmp_path)}
        precision = PRECISIONS[cfg["precision"]]
        encoder = open_states(build_encoder(cfg, precision, CPU), cfg, precision)
        return encoder, build_tokenizer(cfg, 128)

    return make


@pytest.fixture
def filled(opened):
    """As `opened`, with the states of TEXTS computed and their batch: filled("multilayer", "bi", texts=[...])."""

    def make(*words, texts=(("", TEXTS),)) -> tuple[CachedEncoder, TextTokenizer, Batch]:
        encoder, tokenizer = opened(*words)
        rows = [row for instruction, some in texts for row in tokenizer(some, instruction)]
        compute_states(encoder, tokenizer, rows, budget=40)
        return encoder.eval(), tokenizer, tokenizer.batch(rows)

    return make


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("attn", ["causal", "bi"])
def test_states_are_those_of_transformers_for_each_text_alone(filled, small_model, attn, side):
    """Reference: AutoModel with output_hidden_states on one unpadded text, nothing of ours; last and mean by hand."""
    encoder, tokenizer, batch = filled("multilayer", attn, ALL, f"padding_side={side}")
    read = {t: filled("multilayer", attn, f"pooler.tokens={t}", f"padding_side={side}")[0] for t in ("last", "mean")}
    of_texts = {t: one.cache.read(batch).float() * SCALE for t, one in read.items()}
    model = AutoModel.from_pretrained(small_model).eval()
    model.config.is_causal = attn == "causal"
    tokens = encoder.cache.read(batch).float() * SCALE
    for i, row in enumerate(tokenizer(TEXTS)):
        with torch.no_grad():
            states = model(torch.tensor([row.ids]), output_hidden_states=True).hidden_states[1:]
        hidden, real = torch.stack(states, dim=2)[0], batch.view.real[i]
        expected = {"last": hidden[-1], "mean": hidden.mean(dim=0)}
        for kept, exact in [(tokens[i][real], hidden), *((of_texts[t][i, 0], expected[t]) for t in expected)]:
            assert ((kept - exact).abs() <= HALF * exact.abs() + 1e-5).all()
        assert (tokens[i][~real] == 0).all()


@pytest.mark.parametrize(
    "words",
    [("lastlayer",), ("multilayer",), ("multilayer", ALL), ("multilayer", "pooler.query=instruction"), ("layermean",)],
    ids=" ".join,
)
def test_cached_vectors_are_the_live_ones(filled, compose_cell, words):
    """Heads of every kind, instructions included, within the rounding of what they read."""
    pooler, *rest = words
    encoder, _, batch = filled(pooler, "bi", *rest, texts=[("", TEXTS), ("find it", TEXTS)])
    live = build_encoder(compose_cell(pooler, "bi", *rest), PRECISIONS["fp32"], CPU).eval()
    with torch.no_grad():
        assert (encoder(batch) - live(batch)).norm(dim=1).max() < 2 * HALF


def test_bf16_states_come_back_bit_for_bit(filled):
    encoder, _, batch = filled("lastlayer", "bi", "precision=bf16", texts=[("", TEXTS[:1])])
    with torch.inference_mode():
        live = encoder.run_backbone(batch)
    large = live.abs() >= 2**-13  # below that float16 / SCALE has fewer bits than bfloat16
    assert torch.equal(encoder.states(batch)[large], live[large].float())


def test_only_missing_texts_are_computed_and_once(opened, filled):
    encoder, tokenizer, _ = filled("lastlayer", "bi")
    before = {p: p.stat().st_mtime_ns for p in encoder.cache.folder.rglob("*")}
    again, _ = opened("latent", "bi")
    assert again.cache.folder == encoder.cache.folder
    calls = []
    again.backbone.register_forward_hook(lambda *_: calls.append(1))
    rows = tokenizer([*TEXTS, "returned as new", "returned as new"])
    assert [len(r) for r in again.cache.missing(rows)] == [len(rows[-1])]
    assert compute_states(again, tokenizer, rows, budget=40).items() >= {"texts": 4, "computed_texts": 1}.items()
    assert len(calls) == 1
    assert again.cache.missing(rows) == []
    assert {p: p.stat().st_mtime_ns for p in before if p.is_file()} == {p: m for p, m in before.items() if p.is_file()}


@pytest.mark.parametrize(("words", "rows"), [(["multilayer"], 1), (["multilayer", "bi", ALL], 0), (["lastlayer"], 0)])
def test_the_size_on_disk_is_what_is_said_and_more_is_refused_before(opened, words, rows):
    encoder, tokenizer = opened(*words)
    texts, layers = tokenizer(TEXTS), 1 if words == ["lastlayer"] else 3
    size = 2 * layers * 32 * sum(rows or len(text) for text in texts)
    with pytest.raises(UserError, match=r"3 texts take 0.00 GiB of states, and backbone.state_limit=.* Raise it"):
        compute_states(encoder, tokenizer, texts, budget=40, limit=(size - 1) / GIB)
    assert not list(encoder.cache.folder.rglob(STATES))
    assert compute_states(encoder, tokenizer, texts, budget=40, limit=size / GIB)["bytes"] == size
    assert sum(p.stat().st_size - 128 for p in encoder.cache.folder.rglob(STATES)) == size


@pytest.mark.parametrize(
    "words",
    [
        ("multilayer", "causal"),
        ("multilayer", "bi", "max_length=20"),
        ("multilayer", "bi", "precision=mixed"),
        ("multilayer", "bi", "model.attn_implementation=sdpa"),
        ("multilayer", "bi", "pooler.tokens=last"),
        ("multilayer", "bi", "pooler.pool_eos=false"),
        ("multilayer", "bi", "pooler.layers=last:2"),
    ],
)
def test_what_changes_a_state_or_what_is_read_changes_the_cache(opened, words):
    usual = opened("multilayer", "bi", "model.attn_implementation=eager")[0].cache
    assert opened(*words)[0].cache.identity != usual.identity


def test_what_16_bits_cannot_hold_is_refused(opened):
    encoder, tokenizer = opened("lastlayer", "bi")
    encoder.backbone.norm.weight.data.fill_(1e7)
    with pytest.raises(UserError, match="a state above 1,048,064, which 16 bits do not keep"):
        compute_states(encoder, tokenizer, tokenizer(TEXTS), budget=40)
    assert not list(encoder.cache.folder.rglob(STATES))


def test_a_damaged_shard_is_named(opened, filled):
    encoder, *_ = filled()
    shard = next(encoder.cache.folder.glob(f"*/{STATES}"))
    shard.write_bytes(shard.read_bytes()[:-100])
    _mapped.cache_clear()  # as in another process
    with pytest.raises(UserError, match=f"{shard.parent} .*Delete that folder"):
        opened()


def test_a_text_that_was_not_computed_is_an_error(filled):
    encoder, tokenizer, _ = filled()
    with pytest.raises(LookupError, match="states of a text of 6 tokens are not in"):
        encoder.cache.read(tokenizer.batch(tokenizer(["shape of type a"])))


def test_the_backbone_stays_in_evaluation_mode(opened):
    encoder, _ = opened()
    assert encoder.train().pooler.training
    assert not encoder.backbone.training
