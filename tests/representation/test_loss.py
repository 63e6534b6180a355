"""Loss of a run from its logs, also where it was interrupted, against literal sums."""

from types import SimpleNamespace

import numpy as np
import pytest

from records.progress import logged
from representation.loss import WIDTH, answer


def write(folder, attempt, rows):
    place = folder / "logs" / f"attempt{attempt}"
    place.mkdir(parents=True)
    lines = ["epoch,held-out loss,loss,step", *(f"0,,{loss},{step}" for step, loss in rows), f"0,3.9,,{rows[-1][0]}"]
    (place / "metrics.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def run(tmp_path):
    write(tmp_path, 0, [(0, 4.0), (1, 3.0), (2, 9.0)])
    write(tmp_path, 10, [(2, 2.0), (3, 1.0)])
    manifest = {"held_out": {"before": {"loss": 5.2}, "after": {"loss": 3.9}}}
    candidate = SimpleNamespace(folder=tmp_path, manifest=manifest)
    return SimpleNamespace(candidate=candidate, label="mean-bi", trained=True, config={"objective": {"name": "mntp"}})


def test_a_step_counts_as_it_was_last_run(run):
    assert logged(run.candidate.folder, "loss") == [4.0, 3.0, 2.0, 1.0]


def test_running_mean_equals_the_literal_one(run):
    values = np.random.default_rng(0).normal(size=9)
    write(run.candidate.folder, 20, list(enumerate(values.tolist())))
    (line,) = answer([run], None, {}).drawings[0].figure.axes[0].lines
    literal = [np.mean(values[max(0, i - WIDTH + 1) : i + 1]) for i in range(9)]
    assert line.get_xdata().tolist() == list(range(1, 10))
    assert np.allclose(line.get_ydata(), literal)


def test_answer_holds_curve_and_held_out(run):
    found = answer([run], None, {})
    row = [cell.text for cell in found.grids[0].rows[0]]
    assert row == ["mean-bi", "mntp", "loss 5.200 -> 3.900", "4", "2.500", "2.500"]
    assert found.frames["loss"]["loss"].tolist() == [4.0, 3.0, 2.0, 1.0]
    assert "mntp" in found.drawings[0].figure.axes[0].get_title()


def test_no_logs_no_answer(tmp_path, run):
    start = SimpleNamespace(**{**vars(run), "candidate": SimpleNamespace(folder=None, manifest={}), "trained": False})
    assert answer([start], None, {}) is None
