"""The Hodges-Lehmann difference and its interval belong to the signed-rank test."""

import numpy as np
import pandas as pd
import pytest

from analysis.settings import Settings
from analysis.tables.compared_pairs import compare_pairs


def pairs_of(scores, **changes):
    """The pairs table of scores [designs, tasks], all tasks of one type."""
    tasks = [f"t{k}" for k in range(scores.shape[1])]
    matrix = pd.DataFrame(scores.T, index=tasks, columns=[f"d{k}" for k in range(len(scores))])
    return compare_pairs(matrix, {"STS": tasks}, Settings(scores=(), **changes))


def left_out(rows):
    return (rows["hl_low"] > 0) | (rows["hl_high"] < 0)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("n", [3, 5, 6, 8, 13, 41])
def test_the_interval_leaves_out_0_exactly_where_the_test_passes(n, alpha):
    """Coarse scores: most rows have ties, many have zeros. Nothing is rounded away: p is compared as it is."""
    rng = np.random.default_rng(n)
    for steps in (2, 5, 40):
        scores = np.round(rng.normal(0, 1, (9, n)) + np.linspace(0, 1.2, 9)[:, None], 1) // (10 / steps) / 100
        rows = pairs_of(scores, alpha=alpha)
        assert (left_out(rows) == (rows["p_wilcoxon"] <= alpha * (1 + 1e-9))).all()
        assert (rows["hl_low"] <= rows["hl_high"]).all()
        sides = np.sign(rows["w_plus"] - rows["w_minus"])
        assert (sides * np.sign(rows["hodges_lehmann"]) >= 0).all()
        assert (sides[left_out(rows)] == np.where(rows["hl_low"] > 0, 1, -1)[left_out(rows)]).all()


def test_the_estimate_drops_the_zeros_where_the_test_does():
    d = np.array([0.0, 0.0, 0.0, 0.01, 0.02, 0.02, 0.03, -0.01, 0.05, 0.06])
    kept = d[d != 0]
    averages = [(kept[i] + kept[j]) / 2 for i in range(len(kept)) for j in range(i, len(kept))]
    row = pairs_of(np.array([np.zeros(10), d])).iloc[0]
    assert row["hodges_lehmann"] == pytest.approx(np.median(averages), abs=1e-15)
