"""Progress as lines: how far, and the loss, without a bar; and the loggers that write what Lightning logs."""

import json
import re
from types import SimpleNamespace

import pytest

from cli.errors import UserError
from records.progress import read_progress
from training.loop import ProgressJson, ProgressLines, loggers


def test_six_lines_a_run_and_none_at_the_end(capsys, tmp_path):
    lines = ProgressLines(tmp_path, steps=12)
    trainer = SimpleNamespace(global_step=0, is_global_zero=True, progress_bar_metrics={})
    lines.on_train_start(trainer, None)
    for step in range(1, 13):
        trainer.global_step = step
        trainer.progress_bar_metrics = {"loss": step / 10, "tokens/s": 1234.5}
        lines.on_train_batch_end(trainer)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 5
    assert re.fullmatch(rf"{tmp_path}: step 2 of 12, loss 0\.200, 1,234 tokens/s, \d+ s left", said[0])
    assert said[-1].startswith(f"{tmp_path}: step 10 of 12, loss 1.000")
    assert (read_progress(tmp_path).step, read_progress(tmp_path).alive) == (0, True), "five seconds have not passed"


def test_other_processes_are_silent(capsys, tmp_path):
    lines = ProgressLines(tmp_path, steps=1)
    trainer = SimpleNamespace(global_step=1, is_global_zero=False)
    lines.on_train_batch_end(trainer)
    assert capsys.readouterr().out == ""
    assert read_progress(tmp_path) is None


def test_the_same_as_json(capsys, tmp_path):
    lines = ProgressJson(tmp_path, steps=1000)
    shown = {"loss": float("nan"), "tokens/s": 1234.5}
    trainer = SimpleNamespace(global_step=166, is_global_zero=True, progress_bar_metrics=shown)
    lines.on_train_batch_end(trainer)
    said = json.loads(capsys.readouterr().out)
    assert said.pop("seconds_left") > 0
    assert said == {"run": str(tmp_path), "step": 166, "steps": 1000, "loss": None, "tokens_per_second": 1234.5}


def of_class(logger, tmp_path, **settings):
    chosen = {"csv": True, "tensorboard": True, "wandb": None, "logger": logger, "settings": settings or None}
    return loggers({"logging": chosen}, tmp_path)


def test_any_logger_of_lightning_by_its_class(tmp_path):
    *usual, further = of_class("pytorch_lightning.loggers.CSVLogger", tmp_path, save_dir=str(tmp_path), name="mine")
    assert [type(logger).__name__ for logger in usual] == ["CSVLogger", "TensorBoardLogger"]
    assert further.name == "mine"
    further.log_metrics({"loss": 0.25}, step=1)
    further.save()
    assert "0.25" in next((tmp_path / "mine").rglob("metrics.csv")).read_text()


@pytest.mark.parametrize("name", ["nothing.Here", "pathlib.Path", "pytorch_lightning.loggers.Absent"])
def test_what_is_no_logger_is_one_line(tmp_path, name):
    with pytest.raises(UserError, match=r"logging\.logger="):
        of_class(name, tmp_path)
