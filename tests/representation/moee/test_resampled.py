"""Values of bootstrap samples against the samples written out, by scipy and sklearn."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from representation.moee.pair_tasks import PairTask, draws, left_out, once, spearman

RNG = np.random.default_rng(0)
N = 23
UNITS = np.repeat(np.arange(8), 3)[:N]
COUNTS = np.concatenate([once(N), draws(UNITS, 12, seed=1)])
TIED = np.round(RNG.normal(size=N), 1)
ROWS = np.stack([TIED, RNG.normal(size=N), np.round(RNG.random(N), 1), (RNG.random(N) < 0.5).astype(float)])


def written_out(counts):
    return np.repeat(np.arange(N), counts.astype(int))


def test_units_are_drawn_whole():
    drawn = COUNTS[1:]
    for unit in range(8):
        own = drawn[:, unit == UNITS]
        assert (own == own[:, :1]).all()
    firsts = [int(np.flatnonzero(unit == UNITS)[0]) for unit in range(8)]
    assert (drawn[:, firsts].sum(axis=1) == 8).all()
    assert len(np.unique(drawn, axis=0)) > 1


def test_each_unit_is_left_out_once():
    held = left_out(UNITS)
    assert held.shape == (8, N)
    for unit, counts in enumerate(held):
        assert (counts == [u != unit for u in UNITS]).all()


def test_correlations_are_those_of_the_sample():
    found = spearman(ROWS, COUNTS)
    for counts, matrix in zip(COUNTS, found, strict=True):
        wanted = spearmanr(ROWS[:, written_out(counts)].T).statistic
        np.testing.assert_allclose(matrix, wanted, atol=1e-12)


def test_a_row_that_does_not_vary_has_no_correlation():
    found = spearman(np.stack([np.ones(N), TIED]), once(N))[0]
    assert np.isnan(found[0, 1])
    assert found[1, 1] == pytest.approx(1)


@pytest.mark.parametrize("row", [0, 1, 2])
def test_average_precision_is_that_of_the_sample(row):
    task = PairTask("pairs", "PairClassification", [], [], ROWS[3], UNITS)
    for counts, found in zip(COUNTS, task.score(ROWS[row], COUNTS), strict=True):
        places = written_out(counts)
        assert found == pytest.approx(average_precision_score(ROWS[3][places], ROWS[row][places]))


def test_without_a_true_pair_there_is_no_average_precision():
    task = PairTask("pairs", "PairClassification", [], [], ROWS[3], UNITS)
    assert np.isnan(task.score(TIED, (ROWS[3] == 0)[None].astype(float))).all()
