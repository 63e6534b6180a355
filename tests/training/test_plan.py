"""plan=true: what a run was foreseen to take, against what it took."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from transformers import AutoConfig

from benchmarks.speed.step import OurStep
from benchmarks.speed.tensor_bytes import LiveBytes
from cli.errors import UserError
from cli.quoting import train_words
from corpora.readers import read_triples
from records.run_folder import RunFolder
from training.cost.check import facts, memory
from training.plan import forecast, plan, rate_of, remember
from training.run import train_run

QUICK = ["trainer.max_steps=3", "trainer.global_batch_size=8", "token_budget=128", "data=jsonl", "data.validation=4"]
QUICK += ["trainer.progress=false", "objective.warmup=1", "logging.tensorboard=false"]


@pytest.mark.slow
@pytest.mark.parametrize("gradcache", [False, True])
def test_tokens_and_flops_are_those_of_the_run(compose_cell, pairs, tmp_path, gradcache, capsys):
    words = [*QUICK, f"data.path='{pairs}'", f"trainer.gradcache={gradcache}", f"cache_dir={tmp_path}"]
    config = compose_cell("multilayer", "bi", *words)
    foreseen = forecast(config)
    train_run(config, RunFolder(tmp_path / "run"))
    manifest = RunFolder(tmp_path / "run").manifest()
    assert foreseen.tokens == manifest["tokens"]
    assert foreseen.flops == pytest.approx(manifest["flops"], rel=1e-9)
    files = sum(f.stat().st_size for f in (tmp_path / "run").rglob("*.safetensors"))
    assert foreseen.disk_bytes[0] == pytest.approx(files, rel=0.1)
    remember(config, "cpu", 6e12, 6.0)
    assert forecast(config).seconds == pytest.approx(manifest["flops"] / 1e12)
    plan(config)
    assert f"tokens      {manifest['tokens']:,} in 3 steps" in capsys.readouterr().out


def test_rates_are_of_their_setting_and_devices_multiply(compose_cell, tmp_path):
    one = compose_cell("mean", "bi", f"cache_dir={tmp_path}")
    assert rate_of(one, "cpu")[0] is None
    remember(one, "cpu", 1e12, 0.5)  # too short
    assert rate_of(one, "cpu")[0] is None
    remember(one, "cpu", 60e12, 6.0)
    assert rate_of(one, "cpu")[0] == 10e12
    eight = {**one, "trainer": {**one["trainer"], "devices": 4, "num_nodes": 2}}
    assert rate_of(eight, "cpu") == (80e12, rate_of(one, "cpu")[1] + ", times 8")
    assert rate_of({**one, "precision": "bf16"}, "cpu")[0] is None
    with ThreadPoolExecutor(4) as side_by_side:
        list(side_by_side.map(lambda n: remember({**one, "token_budget": n}, "cpu", n * 10e12, 10.0), range(1, 9)))
    known = [rate_of({**one, "token_budget": n}, "cpu")[0] for n in range(1, 9)]
    assert known == [n * 1e12 for n in range(1, 9)], "none is lost where runs end together"
    (tmp_path / "training_rates.json").write_text("{broken")
    assert rate_of(one, "cpu")[0] is None


@pytest.mark.parametrize("gradcache", [False, True])
def test_memory_is_that_of_the_tensors_of_real_steps(compose_cell, pairs, tmp_path, gradcache):
    """Weights, and the most that two steps of AdamW hold at once besides."""
    config = compose_cell("mean", "bi", *QUICK, f"data.path='{pairs}'", f"trainer.gradcache={gradcache}")
    step, triples = OurStep(config), read_triples(config["data"], tmp_path)
    with LiveBytes() as live:
        tokens = max(step(triples[start : start + 8]) for start in (0, 8))
    measured = sum(p.nbytes for p in step.module.parameters()) + live.peak
    assert sum(memory(config, facts(config), tokens)) == pytest.approx(measured, rel=0.25)


def test_memory_by_hand(compose_cell):
    """Four chunks of 32 texts on two processes: each keeps two, or with GradCache one; half the tokens, half of it."""
    words = ["trainer.global_batch_size=64", "token_budget=1536", "trainer.devices=2"]
    sizes = {"saved_bytes": 1000, "crowd_bytes": 0, "base_bytes": 70, "trained_bytes": 7}
    f = replace(facts(compose_cell("mean", "bi", *words)), **sizes)
    assert (f.chunks, f.chunk) == (4, (32, 48))
    assert memory(compose_cell("mean", "bi", *words), f) == (98, 2000)
    assert memory(compose_cell("mean", "bi", *words), f, tokens=4 * 32 * 48 * 0.75) == (98, 1500)
    assert memory(compose_cell("mean", "bi", *words, "trainer.gradcache=true"), f) == (98, 1000)
    shared_out = [*words, "trainer.shard_base=true"]
    assert memory(compose_cell("mean", "bi", *shared_out), replace(f, gathered_bytes=20)) == (35 + 20 + 28, 2000)
    base = AutoConfig.from_pretrained(compose_cell("mean", "bi")["model"]["path"])
    wide, keys = base.hidden_size, base.num_key_value_heads * base.head_dim
    layer = 2 * wide * wide + 2 * wide * keys + 3 * wide * base.intermediate_size + 2 * wide  # q, o; k, v; MLP; norms
    assert f.gathered_bytes == 4 * (base.vocab_size * wide + wide + 2 * layer)


def test_other_objectives_are_refused_and_the_word_is_short_for_a_check(compose_cell):
    assert train_words(["plan=true", "lora.r=8"]) == ["check=plan", "lora.r=8"]
    with pytest.raises(UserError, match=r"not objective=mntp. Give check=true"):
        forecast(compose_cell("mean", "bi", "objective=mntp"))
