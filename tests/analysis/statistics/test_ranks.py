"""Friedman's test and Nemenyi's against scipy, an analysis of variance, Demsar's example and tables."""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.ranks import friedman, nemenyi_distance

# Area under the curve of four classifiers on 14 data sets, Demsar 2006, table 6.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],  # both printed as .975, with ranks 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def scores(n, k, ties, seed=0):
    values = np.random.default_rng(seed).normal(size=(n, k)) + 0.3 * np.arange(k)
    return np.round(values, 0 if ties else 6)


@pytest.mark.parametrize("ties", [False, True])
def test_f_is_that_of_an_analysis_of_variance_of_the_ranks(ties):
    values = scores(9, 5, ties)
    ranks, found = stats.rankdata(-values, axis=1), friedman(values)
    designs, tasks = ranks.mean(axis=0) - ranks.mean(), ranks.mean(axis=1, keepdims=True) - ranks.mean()
    error = ((ranks - ranks.mean() - designs - tasks) ** 2).sum() / 32
    assert found.f == pytest.approx(9 * (designs**2).sum() / 4 / error)
    assert (found.df1, found.df2) == (4, 32)
    assert found.p_f == pytest.approx(stats.f.sf(found.f, 4, 32))


def test_demsars_example():
    """His statistic makes no correction for ties; the CD at .10 is 1.12."""
    found = friedman(DEMSAR)
    assert np.round(found.average_ranks, 3).tolist() == [3.143, 2.000, 2.893, 1.964]
    uncorrected = 14 * 3 * found.w * ((stats.rankdata(-DEMSAR, axis=1) - 2.5) ** 2).sum() / (14 * 5)
    assert uncorrected == pytest.approx(9.28, abs=0.005)
    assert 13 * uncorrected / (14 * 3 - uncorrected) == pytest.approx(3.69, abs=0.005)
    assert nemenyi_distance(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)


def test_tasks_that_agree_or_all_tie():
    agree = friedman(-np.tile([1.0, 2.0, 3.0], (4, 1)))
    assert (agree.w, agree.f, agree.p_f) == (pytest.approx(1), np.inf, 0)
    tied = friedman(np.full((6, 4), 2.5))
    assert (tied.w, tied.f, tied.p_f) == (0, 0, 1)


def test_critical_values_of_demsars_table():
    """Demsar 2006, table 5 (a): q for the two-tailed Nemenyi test."""
    q = {0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]}
    q[0.10] = [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]
    for alpha, row in q.items():
        for k, value in zip(range(2, 11), row, strict=True):
            assert nemenyi_distance(k, 10, alpha) == pytest.approx(value * np.sqrt(k * (k + 1) / 60), abs=1e-3)
