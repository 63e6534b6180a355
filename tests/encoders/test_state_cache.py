"""The cache of states against transformers' own `hidden_states`, text by text; what is in its name; what it refuses."""

import pytest
import torch
from transformers import AutoModel

from cli.errors import UserError
from encoders.frozen import STATES, CachedEncoder, _mapped, compute_states, open_states
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import PRECISIONS
from encoders.tokens import Batch, TextTokenizer

TEXTS = ["the sum of two arrays", "its first argument", "a new array with the same shape and type of its argument"]
CPU = torch.device("cpu")


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
    """Reference: AutoModel with output_hidden_states on one unpadded text, nothing of ours."""
    encoder, tokenizer, batch = filled("multilayer", attn, f"padding_side={side}")
    model = AutoModel.from_pretrained(small_model).eval()
    model.config.is_causal = attn == "causal"
    places = encoder.cache.places(batch)
    for layer in range(3):
        padded = encoder.cache.padded(layer, places, batch)
        for i, row in enumerate(tokenizer(TEXTS)):
            with torch.no_grad():
                hidden = model(torch.tensor([row.ids]), output_hidden_states=True).hidden_states[1:][layer][0]
            real = batch.view.real[i]
            assert (padded[i][real] - hidden).abs().max() < 1e-5
            assert (padded[i][~real] == 0).all()


@pytest.mark.parametrize(
    "words", [("lastlayer",), ("multilayer",), ("multilayer", "pooler.tokens=all"), ("mean",), ("eos",)], ids=" ".join
)
def test_cached_vectors_are_the_live_ones(filled, compose_cell, words):
    """Heads of every kind read one cache, instructions included."""
    pooler, *rest = words
    encoder, _, batch = filled(pooler, "bi", *rest, texts=[("", TEXTS), ("find it", TEXTS)])
    live = build_encoder(compose_cell(pooler, "bi", *rest), PRECISIONS["fp32"], CPU).eval()
    with torch.no_grad():
        assert (encoder(batch) - live(batch)).abs().max() < 2e-6


def test_bf16_states_come_back_bit_for_bit(filled):
    encoder, _, batch = filled("lastlayer", "bi", "precision=bf16", texts=[("", TEXTS[:1])])
    with torch.inference_mode():
        live = encoder.each_layer(batch, range(encoder.cache.layers), lambda _, hidden: hidden)
    for layer in range(3):
        cached = encoder.cache.padded(layer, encoder.cache.places(batch), batch)
        assert cached.dtype is torch.bfloat16
        assert torch.equal(cached, live[layer])


def test_only_missing_texts_are_computed_and_once(opened, filled):
    encoder, tokenizer, _ = filled()
    before = {p: p.stat().st_mtime_ns for p in encoder.cache.folder.rglob("*")}
    again, _ = opened("lastlayer", "bi")
    assert again.cache.folder == encoder.cache.folder
    calls = []
    again.backbone.register_forward_hook(lambda *_: calls.append(1))
    rows = tokenizer([*TEXTS, "returned as new", "returned as new"])
    assert [len(r) for r in again.cache.missing(rows)] == [len(rows[-1])]
    compute_states(again, tokenizer, rows, budget=40)
    assert len(calls) == 1
    assert again.cache.missing(rows) == []
    assert {p: p.stat().st_mtime_ns for p in before if p.is_file()} == {p: m for p, m in before.items() if p.is_file()}


@pytest.mark.parametrize(
    "words",
    [
        ("multilayer", "causal"),
        ("multilayer", "bi", "max_length=20"),
        ("multilayer", "bi", "precision=mixed"),
        ("multilayer", "bi", "model.attn_implementation=sdpa"),
    ],
)
def test_what_changes_a_state_changes_the_cache(opened, words):
    usual = opened("multilayer", "bi", "model.attn_implementation=eager")[0].cache
    assert opened(*words)[0].cache.identity != usual.identity


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
        encoder.cache.places(tokenizer.batch(tokenizer(["shape of type a"])))


def test_the_backbone_stays_in_evaluation_mode(opened):
    encoder, _ = opened()
    assert encoder.train().pooler.training
    assert not encoder.backbone.training
