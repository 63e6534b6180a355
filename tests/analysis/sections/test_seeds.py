"""The table of pairs over tasks and seeds: intervals by hand, their family, the seeds they use."""

import numpy as np
import pytest
from scipy.stats import t

from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.question import Material
from analysis.questions.seeds import answer
from analysis.settings import Settings
from tests.analysis.three_seeds import long_frame

DESIGNS, TASKS = ["control", "a", "b", "c", "d"], [f"t{k:02}" for k in range(40)]


def material(scores, control="control", frame=None, **changes):
    """scores [designs, tasks, seeds] as the section reads them."""
    count, tasks, _ = scores.shape
    frame = long_frame(scores, DESIGNS[:count], TASKS[:tasks]) if frame is None else frame
    own, settings = {"STS": TASKS[:tasks]}, Settings(scores=(), **changes)
    matrix = frame.pivot_table(index="task", columns="design", values="score").loc[TASKS[:tasks], DESIGNS[:count]]
    pairs = compare_pairs(matrix, own, settings, control, frame)
    return Material(settings, dict.fromkeys(DESIGNS[:count]), control, own, own, frame, matrix, pairs)


@pytest.mark.parametrize(("words", "m"), [({}, 4), ({"correction": "none"}, 1)])
def test_intervals_where_only_tasks_vary_are_students(words, m):
    rng = np.random.default_rng(1)
    scores = np.repeat(0.5 + 0.02 * rng.normal(size=(5, 40, 1)), 3, axis=2)
    scores += [-0.01, 0.0, 0.01]  # what a seed does to all designs, and no difference holds
    rows = answer(material(scores, **words)).frames["seeds"].set_index("second")
    d = scores[2, :, 0] - scores[0, :, 0]
    error = d.std(ddof=1) / np.sqrt(40)
    for name, tail in (("over_tasks", 0.025), ("by_model", 0.025), ("together", 0.025 / m)):
        reach = t.isf(tail, 39) * error
        ends = rows.loc["b", [f"low_{name}", f"high_{name}"]].tolist()
        assert ends == pytest.approx([d.mean() - reach, d.mean() + reach])
    assert (rows["family_size"] == m).all()


def test_intervals_are_of_the_level_that_alpha_leaves():
    scores = np.random.default_rng(2).normal(0.5, 0.02, (3, 12, 4))
    usual, strict = (answer(material(scores, "", alpha=alpha)).frames["seeds"] for alpha in (0.05, 0.01))
    for name in ("over_tasks", "by_model", "together"):
        assert (strict[f"low_{name}"] < usual[f"low_{name}"]).all()
        assert (strict[f"high_{name}"] > usual[f"high_{name}"]).all()


def test_seeds_that_agree_are_counted_among_those_that_both_have():
    scores = np.full((2, 5, 4), 0.5) + np.random.default_rng(3).normal(0, 1e-4, (2, 5, 4))
    scores[1] += [0.03, 0.02, -0.01, 0.5]
    frame = long_frame(scores, DESIGNS[:2], TASKS[:5])
    frame = frame[(frame["design"] == "a") | (frame["seed"] != "3")]
    row = answer(material(scores, frame=frame)).frames["seeds"].iloc[0]
    assert (row["n_seeds"], row["seeds_agreeing"]) == (3, 2)
    assert row["difference"] == pytest.approx(0.04 / 3, abs=1e-3)


def test_fewer_than_three_seeds_have_no_table():
    assert answer(material(np.random.default_rng(0).normal(size=(3, 10, 2)))) is None


def test_a_difference_that_the_seeds_leave_open_is_named():
    rng = np.random.default_rng(0)
    scores = 0.5 + rng.normal(0, 0.005, (2, 20, 1)) + rng.normal(0, 0.002, (2, 20, 3))
    scores[1] += 0.02 + np.array([-0.03, 0.0, 0.03])
    section = answer(material(scores))
    row = section.frames["seeds"].iloc[0]
    assert row["low_by_model"] < 0 < row["low_over_tasks"]
    assert section.notes[0].endswith("holds 0: a - control.")
