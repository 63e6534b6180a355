"""The exact test against brute force over all sign patterns, and against scipy."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import wilcoxon
from analysis.statistics.wilcoxon import signed_rank

RULES = ("wilcox", "pratt", "zsplit")


def brute_force(d, zeros):
    """W+, W- and two-sided p by counting all 2^n sign patterns of all n tasks, zeros among them; ranks from scipy."""
    d = np.asarray(d, dtype=float)
    ranks = stats.rankdata(np.abs(d)) - ((d == 0).sum() if zeros == "wilcox" else 0)
    half = ranks[d == 0].sum() / 2 if zeros == "zsplit" else 0.0
    ranks[d == 0] = 0.0
    sums = np.array(list(product([0, 1], repeat=len(d)))) @ ranks + half
    plus, minus = ranks[d > 0].sum() + half, ranks[d < 0].sum() + half
    tails = (sums <= plus + 1e-9).mean(), (sums >= plus - 1e-9).mean()
    return plus, minus, min(1.0, 2 * min(tails))


@pytest.mark.parametrize("zeros", RULES)
@pytest.mark.parametrize("n", range(1, 13))
def test_equals_enumeration_with_ties_and_zeros(n, zeros):
    rng = np.random.default_rng(n)
    d = rng.integers(-3, 4, size=(12, n)) / 8  # few values: nearly every row has ties and zeros
    plus, minus, p = np.array([brute_force(row, zeros) for row in d]).T
    test = signed_rank(d, zeros)
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


def test_splitting_the_zeros_changes_w_and_the_effect_size_but_not_p():
    d = np.array([[0.1, 0.2, 0.3, 0.4, 0.0, 0.0, -0.5, 0.6]])
    pratt, split = signed_rank(d, "pratt"), signed_rank(d, "zsplit")
    assert split.p[0] == pratt.p[0]
    assert (split.w_plus[0], split.w_minus[0]) == (pratt.w_plus[0] + 1.5, pratt.w_minus[0] + 1.5)  # ranks 1 and 2
    assert split.w_plus[0] + split.w_minus[0] == 8 * 9 / 2
    assert 0 < split.rank_biserial[0] < pratt.rank_biserial[0]


@pytest.mark.parametrize("decimals", [12, 1])
def test_at_the_switch_the_normal_curve_agrees_with_the_exact_p(monkeypatch, decimals):
    """1,000 tasks, without ties and with many: closer than 5 % of p where p is above .0001, and never too bold."""
    d = np.round(np.random.default_rng(3).normal(0, 1, size=(8, 1000)) + np.linspace(0, 0.12, 8)[:, None], decimals)
    exact = signed_rank(d)
    monkeypatch.setattr(wilcoxon, "EXACT_UP_TO", 999)
    near = signed_rank(d)
    assert (near.p != exact.p).any()
    large = exact.p > 1e-4
    assert large.sum() >= 5
    np.testing.assert_allclose(near.p[large], exact.p[large], rtol=0.05)
    assert (near.p[exact.p < 0.04] >= exact.p[exact.p < 0.04]).all()


def test_more_than_a_thousand_tasks_are_scipys_normal_curve():
    """The 99,999 random sign patterns that stood here before could not go below .00001."""
    d = np.random.default_rng(4).normal(0.1, 1, size=(3, 1500))
    wanted = [stats.wilcoxon(row, correction=True, method="approx").pvalue for row in d]
    np.testing.assert_allclose(signed_rank(d).p, wanted, rtol=1e-9)
    tied = np.round(d, 1)
    wanted = [stats.wilcoxon(row, correction=True, method="approx").pvalue for row in tied]
    np.testing.assert_allclose(signed_rank(tied).p, wanted, rtol=2e-3)  # half a step is smaller with ties
    assert signed_rank(d + 10).p.max() < 1e-100


def test_the_rank_below_which_the_level_lies_agrees_at_the_switch(monkeypatch):
    exact = [wilcoxon.largest_within(1000, level) for level in (0.025, 0.05, 0.005)]
    monkeypatch.setattr(wilcoxon, "EXACT_UP_TO", 999)
    near = [wilcoxon.largest_within(1000, level) for level in (0.025, 0.05, 0.005)]
    for (k, below), (other, about) in zip(exact, near, strict=True):
        assert other == pytest.approx(k, rel=1e-4)  # of 232,346 averages two
        assert about == pytest.approx(below, rel=1e-2)


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
