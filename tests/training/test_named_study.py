"""`study=<name>`: a folder of that name, one configuration per cell and seed in it, and sweeps side by side."""

import json

import pytest

from tests.started import run_here


@pytest.mark.slow
def test_a_named_study(small_model, pairs, tmp_path):
    """Through train.py and Hydra."""
    words = ["pooler=mean", "attn=causal", f"model.path={small_model}", "precision=fp32", "max_length=48"]
    words += ["accelerator=cpu", "trainer.max_steps=1", "trainer.global_batch_size=8", "objective.warmup=1"]
    words += ["data=jsonl", f"data.path={pairs}", "data.validation=4", "trainer.progress=false", "trainer.threads=1"]
    words += ["logging.tensorboard=false", f"runs_dir={tmp_path}", f"cache_dir={tmp_path / 'cache'}", "study=held"]

    def run(*more):
        done = run_here("train.py", *more, *words)
        return done.returncode, done.stdout + done.stderr

    def r_of(study):
        manifest = tmp_path / study / "mean-causal" / "seed0" / "manifest.json"
        return json.loads(manifest.read_text())["config"]["lora"]["r"]

    assert run()[0] == 0
    assert r_of("held") == 16
    code, said = run("lora.r=8")
    assert (code, "holds a run of another configuration (lora.r: 16 -> 8)" in said) == (2, True), said
    code, said = run("-m", "lora.r=4,8")
    assert code == 0, said
    assert [r_of(f"held+lora.r-{r}") for r in (4, 8)] == [4, 8]
    code, said = run("lora.r=8", "axes=[lora.r]")
    assert (code, "held+lora.r-8/mean-causal/seed0 is finished" in said) == (0, True), said
