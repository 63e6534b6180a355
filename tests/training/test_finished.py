"""What a folder holds is what the command asks for, or it is refused: data, base and configuration are compared."""

import json
import shutil

import pytest

from tests.started import run_here
from tests.triples import quick_run


def trained(model, pairs, folder, *more, steps=2):
    """Give train.py a short run in `folder`; return its exit code and what it says."""
    words = [*quick_run(pairs, steps), "experiment=bundled", "pooler=mean", "attn=causal", f"model.path={model}"]
    words += ["precision=fp32", "max_length=48", "accelerator=cpu", "trainer.threads=1"]
    done = run_here("train.py", *more, *words, f"runs_dir={folder / 'runs'}", f"cache_dir={folder / 'cache'}")
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def command(small_model, pairs, tmp_path_factory):
    """A command that trains two steps: (run it, its copy of the small model, its copy of the pairs)."""
    folder = tmp_path_factory.mktemp("finished")
    model, data = shutil.copytree(small_model, folder / "model"), shutil.copy(pairs, folder / "pairs.jsonl")

    def run():
        return trained(model, data, folder, "trainer.validate_every=2")

    assert run()[0] == 0
    return run, model, data


def refused(run, key):
    """What a command that must be refused says, in one line."""
    code, said = run()
    assert code == 2, said
    assert f"({key})" in said
    assert len([line for line in said.splitlines() if line.startswith("error: ")]) == 1
    return said


@pytest.mark.slow
def test_a_finished_run_is_compared_with_its_data(command):
    run, _, data = command
    (folder := next(data.parent.glob("runs/*/*/seed0"))).joinpath("last.ckpt").touch()  # killed just before its end
    code, said = run()
    assert (code, "nothing to do" in said) == (0, True)
    assert not (folder / "last.ckpt").exists()
    whole = data.read_text()
    data.write_text("".join(whole.splitlines(keepends=True)[: len(whole.splitlines()) // 2]))
    assert "The training data changed since" in refused(run, "data.sha256")
    data.write_text(whole)  # the same bytes at another time
    assert run()[0] == 0
    (adapter := folder / "adapter" / "adapter_model.safetensors").rename(aside := folder / "aside")
    code, said = run()
    assert (code, "is finished, but lacks adapter/" in said) == (2, True)
    aside.rename(adapter)


@pytest.mark.slow
def test_a_finished_run_is_compared_with_its_base(command):
    run, model, _ = command
    before = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    assert "changed since" in refused(run, "base_weights_sha256")
    (model / "model.safetensors").write_bytes(before)


@pytest.mark.slow
def test_a_named_study(small_model, pairs, tmp_path):
    """Through train.py and Hydra."""

    def run(*more):
        return trained(small_model, pairs, tmp_path, *more, "study=held", steps=1)

    def r_of(study):
        manifest = tmp_path / "runs" / f"held+experiment-bundled{study}" / "mean-causal" / "seed0" / "manifest.json"
        return json.loads(manifest.read_text())["config"]["lora"]["r"]

    assert run()[0] == 0
    assert r_of("") == 16
    code, said = run("lora.r=8")
    assert (code, "holds a run of another configuration (lora.r: 16 -> 8)" in said) == (2, True), said
    code, said = run("-m", "lora.r=4,8")
    assert code == 0, said
    assert [r_of(f"+lora.r-{r}") for r in (4, 8)] == [4, 8]
    code, said = run("lora.r=8", "axes=[lora.r]")
    assert (code, "held+experiment-bundled+lora.r-8/mean-causal/seed0 is finished" in said) == (0, True), said
