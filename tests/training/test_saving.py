"""What was trained is on disk before anything is said of it: no failure after the last step costs a step."""

import pytest
import torch
from safetensors.torch import load_file

from records.run_folder import RunFolder
from tests.training.raw_stages import quick_stage
from training.loop import LAST
from training.module import StepModule
from training.objectives.infonce import InfoNCE
from training.run import train_run
from training.validation import Validation

SAME = ("batch_order_sha256", "tokens", "flops", "loss", "data", "code")


@pytest.fixture(scope="module")
def config(compose_cell, pairs, headed_model, lines):
    """Compose a run of four quick steps whose only checkpoint is that of the last."""

    def compose(objective):
        if objective != "infonce":
            return compose_cell(
                "mean", "bi", *quick_stage(objective, headed_model, lines), "trainer.checkpoint_every=0"
            )
        trainer = ["max_steps=4", "global_batch_size=8", "checkpoint_every=0", "progress=false"]
        data = ["data=jsonl", f"data.path='{pairs}'", "data.validation=4", "objective.warmup=1"]
        return compose_cell("lastlayer", "bi", *(f"trainer.{t}" for t in trainer), *data)

    return compose


def trained(folder):
    """Every trained tensor of a run."""
    head = load_file(folder / "head.safetensors")
    return {**load_file(folder / "adapter" / "adapter_model.safetensors"), **{f"head.{k}": v for k, v in head.items()}}


def fails(*_):
    raise RuntimeError("no shape-only form of aten::new_operator")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "failing"),
    [
        ("infonce", (Validation, "score")),  # within the last step: before the adapter is written
        ("infonce", (InfoNCE, "facts")),
    ],
)
def test_what_fails_after_the_last_step_is_done_again_without_it(config, tmp_path, monkeypatch, objective, failing):
    cfg = config(objective)
    steps, real = [], StepModule.training_step

    def counted(self, tick, index):
        steps.append(self.global_step)
        return real(self, tick, index)

    monkeypatch.setattr(StepModule, "training_step", counted)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="new_operator"):
        patch.setattr(*failing, fails)
        train_run(cfg, RunFolder(tmp_path / "again"))
    assert steps == [0, 1, 2, 3]
    assert (tmp_path / "again" / LAST).is_file()
    assert (tmp_path / "again" / "head.safetensors").is_file() == (failing[1] != "score")
    assert RunFolder(tmp_path / "again").manifest()["status"] == "running"
    train_run(cfg, RunFolder(tmp_path / "again"))
    assert steps == [0, 1, 2, 3], "no step was run again"
    assert not (tmp_path / "again" / LAST).exists()
    train_run(cfg, RunFolder(tmp_path / "whole"))
    one, other = trained(tmp_path / "again"), trained(tmp_path / "whole")
    assert all(torch.equal(one[k], other[k]) for k in one)
    again, whole = (RunFolder(tmp_path / name).manifest() for name in ("again", "whole"))
    for key in (*SAME, "validation_ndcg_at_10" if objective == "infonce" else "held_out"):
        assert again[key] == whole[key], key
