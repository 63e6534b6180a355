"""Progress as lines: how far, and the loss, without a bar."""

import re
from types import SimpleNamespace

from training.loop import ProgressLines


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


def test_other_processes_are_silent(capsys, tmp_path):
    lines = ProgressLines(tmp_path, steps=1)
    trainer = SimpleNamespace(global_step=1, is_global_zero=False, progress_bar_metrics={})
    lines.on_train_batch_end(trainer)
    assert capsys.readouterr().out == ""
