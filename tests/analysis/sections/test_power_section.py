"""The table of power: its rows, marks, restriction, files and the words for small types."""

import numpy as np
import pytest

from analysis.questions.power import MOST_PAIRS
from analysis.write import write_files

ASKED = ("pairs", "power")
TASKS = [f"STS{k}" for k in range(12)] + [f"Retrieval{k}" for k in range(3)]


@pytest.fixture
def scores(tmp_path):
    """Return a function: number of designs -> csv; designs are .02 apart, with a noise of .02."""

    def write(designs: int, tasks: list[str] = TASKS):
        rng = np.random.default_rng(1)
        lines = ["model,task,type,score"]
        for k in range(designs):
            for task in tasks:
                kind = task.rstrip("0123456789")
                lines.append(f"m{k:02d},{task},{kind},{0.5 + 0.02 * k + rng.normal(0, 0.02):.4f}")
        path = tmp_path / "scores.csv"
        path.write_text("\n".join(lines))
        return path

    return write


def power_of(result):
    return next(section for section in result.answers if section.name == "power")


def test_table_and_csv(scores, analyse_words, tmp_path):
    result = analyse_words(f"scores={scores(3)}", "delta=0.02")
    table = power_of(result).frames["power"]
    assert len(table) == 3 * 3  # pairs x (two types and All)
    merged = table.merge(result.material.pairs, on=["type", "first", "second"])
    np.testing.assert_allclose(merged["p_min_adjusted_x"], merged["p_min_adjusted_y"])
    few = table[table["type"] == "Retrieval"]
    assert few[["power_delta", "tasks_delta", "detectable"]].isna().all(axis=None)
    every = table[table["type"] == "All"]
    assert every["power_delta"].between(0.3, 1).all()
    assert (every["power_delta_first_step"] <= every["power_delta"]).all()
    assert (every["level_first_step"] == 0.05 / 3).all()
    assert "power.csv" in [path.name for path in write_files(result, tmp_path / "out")]


def test_a_row_that_cannot_pass_is_marked(scores, analyse_words):
    result = analyse_words(f"scores={scores(3)}", "types=[Retrieval]")
    (grid,) = power_of(result).grids
    assert grid.title == "What 3 tasks allow"
    assert [row[1].text for row in grid.rows] == ["n.a.: p >= .75"] * 3
    assert {cell.text for row in grid.rows for cell in row[3:]} == {"-"}


def test_many_designs_are_restricted_and_that_is_said(scores, analyse_words):
    result = analyse_words(f"scores={scores(11)}", "rows_shown=10")
    section = power_of(result)
    assert len(section.frames["power"]) == MOST_PAIRS
    assert set(section.frames["power"]["type"]) == {"All"}
    assert len(section.grids[0].rows) == 10
    best = set(result.material.matrix.mean().nlargest(5).index)
    kept = section.frames["power"].iloc[result.material.leading(section.frames["power"])[:10]]
    assert {*kept["first"], *kept["second"]} == best, "ten pairs are all pairs of the best five"
    assert [row[0].text for row in section.grids[0].rows] == [
        f"{b} - {a}" for a, b in zip(kept["first"], kept["second"], strict=True)
    ]
