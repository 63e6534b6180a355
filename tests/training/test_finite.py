"""A number that is not finite stops a run before it reaches weights or checkpoint; the same command then goes on."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import pytest
import torch
from safetensors.torch import load_file

from cli.errors import UserError
from records.run_folder import RunFolder
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
