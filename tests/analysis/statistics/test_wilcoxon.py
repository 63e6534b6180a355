"""The exact test against brute force over all sign patterns, and against scipy."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.wilcoxon import signed_rank


def brute_force(d):
    """W+, W- and two-sided p by counting all 2^n sign patterns of all n tasks, zeros among them; ranks from scipy."""
    d = np.asarray(d, dtype=float)
    ranks = stats.rankdata(np.abs(d)) - (d == 0).sum()
    ranks[d == 0] = 0.0
    sums = np.array(list(product([0, 1], repeat=len(d)))) @ ranks
    plus, minus = ranks[d > 0].sum(), ranks[d < 0].sum()
    tails = (sums <= plus + 1e-9).mean(), (sums >= plus - 1e-9).mean()
    return plus, minus, min(1.0, 2 * min(tails))


@pytest.mark.parametrize("n", range(1, 13))
def test_equals_enumeration_with_ties_and_zeros(n):
    rng = np.random.default_rng(n)
    d = rng.integers(-3, 4, size=(12, n)) / 8  # few values: nearly every row has ties and zeros
    plus, minus, p = np.array([brute_force(row) for row in d]).T
    test = signed_rank(d)
    np.testing.assert_allclose(test.p, p, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(test.w_plus, plus)
    np.testing.assert_array_equal(test.w_minus, minus)


@pytest.mark.parametrize("n", [3, 8, 11, 25, 41, 56, 100])
def test_equals_scipy_exact_without_ties(n):
    d = np.random.default_rng(n).normal(0.3, 1, size=(6, n))
    test = signed_rank(d)
    for k, row in enumerate(d):
        reference = stats.wilcoxon(row, method="exact")
        assert test.p[k] == pytest.approx(reference.pvalue, abs=1e-12, rel=1e-9)
        assert min(test.w_plus[k], test.w_minus[k]) == reference.statistic


def test_many_tasks_agree_with_scipys_normal_curve():
    d = np.random.default_rng(4).normal(0.05, 1, size=(2, 1200))
    wanted = [stats.wilcoxon(row, correction=True, method="approx").pvalue for row in d]
    np.testing.assert_allclose(signed_rank(d).p, wanted, rtol=0.01)


@pytest.mark.parametrize(("n", "smallest"), [(3, 0.25), (4, 0.125), (5, 0.0625), (6, 2**-5), (8, 2**-7), (11, 2**-10)])
def test_smallest_attainable_is_attained(n, smallest):
    test = signed_rank(np.arange(1.0, n + 1)[None])
    assert test.p_min[0] == smallest == test.p[0]
    assert test.rank_biserial[0] == 1.0


def test_all_zero_differences_say_nothing():
    test = signed_rank(np.zeros((2, 5)))
    assert test.p.tolist() == test.p_min.tolist() == [1.0, 1.0]
    assert test.rank_biserial.tolist() == [0.0, 0.0]
    assert test.n_zero.tolist() == [5, 5]


def test_float_noise_makes_no_rank():
    noisy = np.array([[0.3 - 0.1, -0.2, 0.1 + 0.2 - 0.3, 0.4]])
    clean = np.array([[0.2, -0.2, 0.0, 0.4]])
    assert noisy[0, 0] != 0.2
    assert noisy[0, 2] != 0.0
    for field, value in vars(signed_rank(noisy)).items():
        assert value == getattr(signed_rank(clean), field), field


def test_five_percent_of_null_tables_at_most_pass():
    """The level holds: over all sign patterns of fixed sizes, P(p <= .05) is at most .05, and not idle."""
    sizes = np.array([1.0, 2, 2, 3, 4, 5, 5, 6, 7, 8])
    signs = np.array(list(product([-1, 1], repeat=len(sizes))))
    share = (signed_rank(signs * sizes).p <= 0.05).mean()
    assert 0.03 < share <= 0.05
