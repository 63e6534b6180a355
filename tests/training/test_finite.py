"""A number that is not finite stops a run before it reaches weights or checkpoint; the same command then goes on."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import pytest
import torch
from safetensors.torch import load_file

from cli.compose import CONF
from cli.errors import UserError
from records.run_folder import RunFolder
from tests.started import start
from tests.training.raw_stages import quick_stage
from training.loop import LAST
from training.module import StepModule
from training.run import train_run

OBJECTIVES = ("infonce", "mntp", "simcse")


@pytest.fixture
def bad_gradient(monkeypatch) -> Callable[[int, float], AbstractContextManager[None]]:
    """bad_gradient(3, nan): inside the `with`, one entry of one gradient of step 3 has that value; the loss is fine."""

    @contextmanager
    def at(step: int, value: float) -> Iterator[None]:
        real = StepModule.training_step

        def spoilt(self, tick, index):
            backward = self.objective.backward

            def spoil(*words):
                loss = backward(*words)
                if self.global_step == step:
                    next(p for p in self.parameters() if p.grad is not None).grad.view(-1)[0] = value
                return loss

            self.objective.backward = spoil
            try:
                return real(self, tick, index)
            finally:
                del self.objective.backward

        with monkeypatch.context() as patch:
            patch.setattr(StepModule, "training_step", spoilt)
            yield

    return at


@pytest.fixture(scope="module")
def config(compose_cell, pairs, headed_model, lines):
    """Compose a run of four quick steps, a checkpoint after the second and the fourth."""

    def compose(objective, *words):
        if objective != "infonce":
            return compose_cell("mean", "bi", *quick_stage(objective, headed_model, lines), *words)
        trainer = ["max_steps=4", "global_batch_size=8", "checkpoint_every=2", "progress=false"]
        data = ["data=jsonl", f"data.path='{pairs}'", "data.validation=4", "objective.warmup=1"]
        return compose_cell("lastlayer", "bi", *(f"trainer.{t}" for t in trainer), *data, *words)

    return compose


def trained(folder):
    """Every trained tensor of a finished run."""
    head = load_file(folder / "head.safetensors")
    return {**load_file(folder / "adapter" / "adapter_model.safetensors"), **{f"head.{k}": v for k, v in head.items()}}


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory):
    """The trained tensors of the uninterrupted run of an objective, clipped at `clip`."""

    @cache
    def train(objective, clip):
        folder = tmp_path_factory.mktemp("whole")
        train_run(config(objective, f"trainer.gradient_clip={clip}"), RunFolder(folder))
        return trained(folder)

    return train


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("spoil", [(3, "nan", 1.0), (1, "inf", 0), (3, "inf", 1.0)])
def test_the_same_command_goes_on_after_a_gradient_that_is_not_finite(
    config, whole, tmp_path, bad_gradient, *, objective, spoil
):
    step, value, clip = spoil
    cfg = config(objective, f"trainer.gradient_clip={clip}")
    message = rf"Step {step} is not finite in this process \(loss \d.*, gradient norm (nan|inf); examples .*Lower"
    with (
        bad_gradient(step, float(value)),
        pytest.raises(UserError, match=message),
    ):
        train_run(cfg, RunFolder(tmp_path / "spoilt"))
    assert (tmp_path / "spoilt" / LAST).exists() == (step == 3)
    train_run(cfg, RunFolder(tmp_path / "spoilt"))
    expected, found = whole(objective, clip), trained(tmp_path / "spoilt")
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())
    assert all(weight.isfinite().all() for weight in expected.values())


DRIVER = """
import os
import sys
from pathlib import Path

from cli.errors import guard
from training import loop
from training.large_batch import LargeBatch, rank

loop.HOME = Path(__file__).parent  # the second process is started as this file
real, calls = LargeBatch.sum_gradients, []

def spoilt(self):
    real(self)
    calls.append(1)
    if len(calls) == 4 and rank() == 1 and os.environ["SPOIL"] == "1":
        next(p for p in self.encoder.parameters() if p.grad is not None).grad.view(-1)[0] = float("nan")

LargeBatch.sum_gradients = spoilt
if __name__ == "__main__":
    sys.path.remove(str(loop.HOME))
    from train import main

    guard(main)
"""


@pytest.mark.slow
def test_processes_stop_together_where_one_has_a_gradient_that_is_not_finite(small_model, pairs, tmp_path):
    """Through Lightning and its launcher. The process that writes checkpoints is not the one that saw it."""
    (tmp_path / "train.py").write_text(DRIVER)
    words = ["pooler=lastlayer", "attn=bi", f"model.path={small_model}", "precision=fp32", "accelerator=cpu"]
    words += [f"trainer.{t}" for t in ("max_steps=6", "global_batch_size=8", "checkpoint_every=1", "progress=false")]
    words += [
        "trainer.devices=2",
        "trainer.chunk_size=4",
        "trainer.sync_gradients=false",
        "data=jsonl",
        f"data.path='{pairs}'",
    ]
    words += ["data.validation=4", "objective.warmup=1", "logging.tensorboard=false"]
    words += [f"runs_dir={tmp_path / 'runs'}"]

    def run(spoil):
        env = {**os.environ, "SPOIL": spoil, "PYTHONPATH": str(CONF.parent), "OMP_NUM_THREADS": "1"}
        return start(str(tmp_path / "train.py"), *words, cwd=tmp_path, env=env)

    stopped = run("1")
    assert stopped.returncode == 2, stopped.stderr[-2000:]
    errors = [line for line in stopped.stderr.splitlines() if line.startswith("error:")]
    assert any("Step 3 is not finite in this process (" in line for line in errors)
    assert any("Step 3 is not finite in another process (" in line for line in errors)
    assert "Traceback" not in stopped.stderr
    (folder,) = (tmp_path / "runs").glob("*/lastlayer-bi/seed0")
    assert torch.load(folder / LAST, weights_only=True)["global_step"] == 3
    done = run("0")
    assert done.returncode == 0, done.stderr[-2000:]
    assert RunFolder(folder).manifest()["status"] == "finished"
    assert all(v.isfinite().all() for v in trained(folder).values())
