"""Friedman's test against scipy, an analysis of variance, Spearman's correlation, Demsar's example and enumeration."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import friedman as rank_permutation
from analysis.statistics.friedman import friedman, permutation_p
from analysis.statistics.ranks import task_ranks

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
@pytest.mark.parametrize(("n", "k"), [(2, 3), (5, 4), (14, 6), (40, 5)])
def test_chi2_is_scipys(n, k, ties):
    values = scores(n, k, ties)
    ours, theirs = friedman(task_ranks(values)), stats.friedmanchisquare(*values.T)
    assert (ours.chi2, ours.p_chi2) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-10)


@pytest.mark.parametrize("ties", [False, True])
def test_f_is_that_of_an_analysis_of_variance_of_the_ranks(ties):
    ranks = task_ranks(scores(9, 5, ties))
    found = friedman(ranks)
    designs, tasks = ranks.mean(axis=0) - ranks.mean(), ranks.mean(axis=1, keepdims=True) - ranks.mean()
    error = ((ranks - ranks.mean() - designs - tasks) ** 2).sum() / 32
    assert found.f == pytest.approx(9 * (designs**2).sum() / 4 / error)
    assert (found.df1, found.df2) == (4, 32)
    assert found.p_f == pytest.approx(stats.f.sf(found.f, 4, 32))


def test_w_is_the_mean_rank_correlation_of_the_tasks():
    values = scores(7, 5, ties=False)
    rho = [stats.spearmanr(values[a], values[b]).statistic for a in range(7) for b in range(a)]
    assert friedman(task_ranks(values)).w == pytest.approx((np.mean(rho) * 6 + 1) / 7)


def test_demsars_example():
    found = friedman(task_ranks(DEMSAR))
    assert np.round(found.average_ranks, 3).tolist() == [3.143, 2.000, 2.893, 1.964]
    spread = ((task_ranks(DEMSAR) - 2.5) ** 2).sum() / (14 * 5)  # 1 without ties
    uncorrected = found.chi2 * spread
    assert uncorrected == pytest.approx(9.28, abs=0.005)  # his statistic makes no correction for ties
    assert 13 * uncorrected / (14 * 3 - uncorrected) == pytest.approx(3.69, abs=0.005)


def enumerate_p(ranks):
    """All permutations within every task, one after the other: P(at least as large) and P(largest)."""
    observed = ((ranks.sum(axis=0) - ranks.sum() / ranks.shape[1]) ** 2).sum()
    values = np.array(
        [
            ((np.sum(rows, axis=0) - ranks.sum() / ranks.shape[1]) ** 2).sum()
            for rows in product(*(list(permutations(row)) for row in ranks))
        ]
    )
    return np.mean(values >= observed - 1e-9), np.mean(values >= values.max() - 1e-9)


CASES = [scores(4, 3, False), scores(4, 3, True), scores(3, 4, False), scores(3, 4, True), scores(2, 3, False, 5)]


@pytest.mark.parametrize("values", CASES)
def test_exact_p_is_that_of_full_enumeration(values):
    ranks = task_ranks(values)
    found = friedman(ranks)
    assert found.exact
    assert (found.p_permutation, found.p_min) == pytest.approx(enumerate_p(ranks), abs=1e-12)
    assert found.p == found.p_permutation


@pytest.mark.parametrize("values", CASES)
def test_drawn_p_agrees_with_full_enumeration(values, monkeypatch):
    monkeypatch.setattr(rank_permutation, "STATES", 1)
    ranks = task_ranks(values)
    exact, _ = enumerate_p(ranks)
    found = permutation_p(np.rint(2 * ranks).astype(np.int64))
    assert (found.exact, found.permutations) == (False, 99_999)
    assert found.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 99_999) + 1e-5)


def test_known_critical_values():
    """Friedman's tables: k = 3, n = 3: chi2 = 6 has p = 1/36; k = 3, n = 4: chi2 = 8 has p = 1/216."""
    for n in (3, 4):
        found = friedman(np.tile([1.0, 2.0, 3.0], (n, 1)))
        assert (found.chi2, found.p) == pytest.approx((2 * n, 6.0 ** (1 - n)))
        assert (found.w, found.f, found.p_f) == (1, np.inf, 0)


def test_more_scores_draw_fewer_permutations():
    few, more, most = (friedman(task_ranks(scores(n, 10, False))) for n in (20, 41, 201))
    assert [found.permutations for found in (few, more, most)] == [99_999, 9_999, 0]
    assert np.isnan(most.p_permutation)
    assert most.p == most.p_f
    assert more.p == friedman(task_ranks(scores(41, 10, False))).p


def test_all_tied():
    found = friedman(np.full((6, 4), 2.5))
    assert (found.chi2, found.w, found.f, found.p_chi2, found.p_f, found.p, found.p_min) == (0, 0, 0, 1, 1, 1, 1)


def test_float_noise_makes_no_rank():
    assert task_ranks(np.array([[0.3, 0.1 + 0.2, 0.1]])).tolist() == [[1.5, 1.5, 3]]
