"""A head on cached states: trained as on live ones, resumable, and quick to refuse."""

import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from cli.errors import UserError
from encoders import frozen
from encoders.backbone import load_backbone
from encoders.encoder import Encoder
from encoders.frozen import CachedEncoder, StateCache
from encoders.loading import load_run
from poolers.shared.registry import build_pooler
from records.files import stream_seed
from records.manifest import read_manifest
from tests.triples import quick_run
from training import run
from training.checks import check_sizes
from training.cost import training_flops
from training.run import train_run

STEPS, BATCH = 4, 8


@pytest.fixture
def cell(compose_cell, pairs, tmp_path):
    """Compose a frozen cell that trains four quick steps; its cache is the test's own."""
    quick = [*quick_run(pairs, STEPS, checkpoint=2), "backbone.frozen=true"]
    quick += ["objective.hard_negatives=1", "objective.temperature=0.05"]

    def compose(pooler="multilayer", attn="bi", *words):
        return compose_cell(pooler, attn, *quick, *words) | {"cache_dir": str(tmp_path / "cache")}

    return compose


def head(folder):
    return load_file(folder / "head.safetensors")


def live_states(cfg, batch):
    """The layers' states as transformers itself gives them."""
    model = AutoModel.from_pretrained(cfg["model"]["path"]).eval()
    model.config.is_causal = cfg["attn"]["name"] == "causal"
    with torch.no_grad():
        return model(batch.input_ids, attention_mask=batch.attention_mask, output_hidden_states=True).hidden_states[1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("multilayer", "bi", "seed=0"),
        ("multilayer", "causal", "seed=1"),
        ("multilayer", "bi", "pooler.tokens=all"),
        ("lastlayer", "causal", "seed=0"),
        ("lastlayer", "bi", "trainer.gradcache=true"),
    ],
    ids=" ".join,
)
def test_training_on_cached_states_is_training_without_a_cache(cell, tmp_path, monkeypatch, words):
    """Within the rounding of 16 bits: AdamW divides by a gradient's own size, so noise in one near zero shows."""
    cfg = cell(*words)
    train_run(cfg, tmp_path / "cached")
    monkeypatch.setattr(CachedEncoder, "states", Encoder.states)
    train_run(cfg, tmp_path / "live")
    start = build_pooler(cfg["pooler"], 32, 3, stream_seed(cfg["seed"], "head")).state_dict()
    cached, live = (
        torch.cat([(head(tmp_path / k)[n] - start[n]).flatten() for n in start]) for k in ("cached", "live")
    )
    assert live.norm() > 0.05, "training changed nothing"
    assert 0 < (cached - live).norm() < 0.03 * live.norm()
    losses = [read_manifest(tmp_path / name)["loss"] for name in ("cached", "live")]
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)


@pytest.mark.parametrize(("pooler", "word"), [("lastlayer", "tokens=all"), ("multilayer", "tokens=mean")])
def test_the_flops_of_a_step_are_those_of_the_head(cell, pooler, word):
    """By hand, one query and no MLP: products of a text of T tokens with K keys, forward."""
    one = [f"pooler.{word}", "pooler.num_queries=1", "pooler.mlp=false"]
    forward = training_flops(cell(pooler, "bi", *one)).forward
    tokens, width = 24, 32  # half of max_length
    keys = tokens if pooler == "lastlayer" else 3
    attention = 2 * keys * (2 * width * width + 2 * width)  # keys and values; scores and their sum
    mean = 0 if pooler == "lastlayer" else 3 * 2 * tokens * width
    a_text = attention + 2 * width * width + mean  # and the output projection
    assert forward * tokens == pytest.approx(a_text, rel=0.11), "the queries themselves are projected once a chunk"


@pytest.mark.slow
def test_a_frozen_run_loads_as_the_trained_head_on_live_states(cell, tmp_path, monkeypatch):
    kept = []
    real = run.save_trained
    monkeypatch.setattr(run, "save_trained", lambda encoder, *rest: (kept.append(encoder), real(encoder, *rest))[1])
    cfg = cell()
    train_run(cfg, tmp_path / "run")
    loaded = load_run(tmp_path / "run", cfg)
    assert not isinstance(loaded.encoder, CachedEncoder)
    texts = ["the sum of the array", "returned array as sum"]
    batch = loaded.tokenizer.batch(loaded.tokenizer(texts))
    with torch.no_grad():
        on_live_states = kept[0].pooler(
            [kept[0].pooler.reduce(i, h, batch.view) for i, h in enumerate(live_states(cfg, batch))], batch.view
        )
    unit = on_live_states / on_live_states.norm(dim=1, keepdim=True)
    assert abs(loaded.encode(texts) - unit.numpy()).max() < 2e-6
    base = load_backbone(cfg["model"], torch.float32).state_dict()
    assert kept[0].backbone.state_dict().keys() == base.keys(), "no adapter was added"
    assert all(torch.equal(v, base[k]) for k, v in kept[0].backbone.state_dict().items())


@pytest.mark.slow
def test_a_second_head_runs_no_backbone(cell, tmp_path, monkeypatch):
    calls = []
    real = frozen.open_states

    def counted(encoder, *rest):  # from here on: the leak probe of the start is behind us
        encoder.backbone.register_forward_hook(lambda *_: calls.append(1))
        return real(encoder, *rest)

    monkeypatch.setattr(frozen, "open_states", counted)
    train_run(cell("multilayer", "bi", "trainer.validate_every=2"), tmp_path / "first")
    assert len(calls) > 0
    calls.clear()
    train_run(cell("multilayer", "bi", "head.num_queries=1"), tmp_path / "one query")
    assert read_manifest(tmp_path / "one query")["states"]["computed_texts"] == 0
    assert calls == []
    train_run(cell("multilayer", "bi", "trainer.max_steps=6", "seed=3"), tmp_path / "more")
    facts_of = read_manifest(tmp_path / "more")["states"]
    assert 0 < facts_of["computed_texts"] < facts_of["texts"], "only what is new is computed"
    assert len(calls) > 0


@pytest.mark.slow
def test_killed_while_states_are_computed_and_continued(cell, tmp_path, monkeypatch):
    train_run(cell("multilayer", "bi", "token_budget=64"), tmp_path / "whole")
    shutil.move(tmp_path / "cache", tmp_path / "cache of the whole run")
    real, written = StateCache.keep, []

    def dying(self, *rest):
        if len(written) == 2:
            raise SystemExit("the power went")
        written.append(1)
        real(self, *rest)

    cfg = cell("multilayer", "bi", "token_budget=64")
    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="the power went"):
        patch.setattr(StateCache, "keep", dying)
        train_run(cfg, tmp_path / "broken")
    assert read_manifest(tmp_path / "broken")["status"] == "running"
    train_run(cfg, tmp_path / "broken")
    states = read_manifest(tmp_path / "broken")["states"]
    assert 0 < states["computed_texts"] < states["texts"]
    whole, resumed = head(tmp_path / "whole"), head(tmp_path / "broken")
    assert all(torch.equal(whole[k], resumed[k]) for k in whole)


@pytest.mark.parametrize("pooler", ["eos", "mean", "weightedmean"])
def test_nothing_to_train_is_refused(cell, pooler):
    with pytest.raises(UserError, match=rf"pooler={pooler} leaves nothing to train"):
        check_sizes(cell(pooler))
