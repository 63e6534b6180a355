"""The section of all designs at once, from files to tables: as they are, tied, alone and many."""

import numpy as np
import pytest

from analysis.statistics.ranks import friedman, nemenyi_p
from tests.analysis.three_seeds import write_long


def section(analyse_words, tmp_path, values, types=None):
    """The answer for scores [designs, tasks]."""
    types = types or {f"t{k:02}": "STS" for k in range(values.shape[1])}
    path = write_long(tmp_path / "t.csv", values, [f"m{k}" for k in range(len(values))], types)
    result = analyse_words(f"scores={path}")
    return next((answer for answer in result.answers if answer.name == "ranks"), None), result.material.matrix


def test_tables_hold_the_tests(analyse_words, tmp_path):
    values = np.random.default_rng(0).normal(0.5, 0.05, (4, 12)) + np.arange(4)[:, None] / 20
    found, matrix = section(analyse_words, tmp_path, np.round(values, 4))
    test = friedman(matrix.to_numpy())
    row = found.frames["friedman"].iloc[0]
    assert (row["chi2"], row["p_f"], row["n_designs"]) == (test.chi2, test.p_f, 4)
    assert found.frames["ranks"]["average_rank"].tolist() == test.average_ranks.tolist()
    pairs = found.frames["rank_pairs"]
    assert pairs["p_nemenyi"].tolist() == nemenyi_p(pairs["rank_difference"].to_numpy(), 4, 12).tolist()
    best = [row[0].text for row in found.grids[1].rows]
    assert best == list(matrix.columns[np.argsort(test.average_ranks)])
    assert not [cell for grid in found.grids for row in grid.rows for cell in row if cell.mark]


@pytest.mark.parametrize("values", [np.full((3, 6), 0.5), np.tile([[0.3], [0.4], [0.5]], 6)])
def test_degenerate_scores_print_without_nan(values, analyse_words, tmp_path):
    found, _ = section(analyse_words, tmp_path, values)
    texts = [text for grid in found.grids for row in grid.rows for cell in row for text in (cell.text, *cell.below)]
    assert not [text for text in texts if "nan" in text]
    assert found.drawings[0].name == "critical_difference"


def test_two_designs_and_one_task_have_no_friedman(analyse_words, tmp_path):
    values = np.random.default_rng(1).normal(size=(3, 7)) / 10 + 0.5
    assert section(analyse_words, tmp_path, values[:2])[0] is None
    kinds = {f"t{k:02}": "STS" if k else "Retrieval" for k in range(7)}
    found, _ = section(analyse_words, tmp_path, values, kinds)
    assert list(found.frames["friedman"]["type"]) == ["STS", "All"]


def test_many_designs_stay_short(analyse_words, tmp_path):
    found, _ = section(analyse_words, tmp_path, np.random.default_rng(2).normal(size=(60, 8)) / 10 + 0.5)
    assert len(found.grids[1].rows) == 45
    assert "rank_pairs" not in found.frames
    assert "Of 60 designs the 30 of the highest mean are drawn." in found.drawings[0].caption
