"""The exact test against brute force over all sign patterns, and against scipy."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.wilcoxon import doubled_midranks, null_lower_tail, signed_rank


def brute_force_p(d, zeros):
    """Two-sided p by counting all 2^m sign patterns, ranks from scipy; independent of the code under test."""
    d = np.asarray(d, dtype=float)
    if zeros == "wilcox":
        d = d[d != 0]
    if not d.any():
        return 1.0
    ranks = stats.rankdata(np.abs(d))[d != 0]
    signs = np.array(list(product([0, 1], repeat=len(ranks))))
    sums = signs @ ranks
    observed = ranks[d[d != 0] > 0].sum()
    return min(1.0, 2 * min((sums <= observed + 1e-9).mean(), (sums >= observed - 1e-9).mean()))


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
@pytest.mark.parametrize("n", range(1, 11))
def test_equals_enumeration_with_ties_and_zeros(n, zeros):
    rng = np.random.default_rng(n)
    d = rng.integers(-3, 4, size=(12, n)) / 8  # few values: nearly every row has ties and zeros
    expected = [brute_force_p(row, zeros) for row in d]
    np.testing.assert_allclose(signed_rank(d, zeros).p, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [3, 8, 11, 25, 41, 56, 100])
def test_equals_scipy_exact_without_ties(n):
    d = np.random.default_rng(n).normal(0.3, 1, size=(6, n))
    test = signed_rank(d)
    for k, row in enumerate(d):
        reference = stats.wilcoxon(row, method="exact")
        assert test.p[k] == pytest.approx(reference.pvalue, abs=1e-12, rel=1e-9)
        assert min(test.w_plus[k], test.w_minus[k]) == reference.statistic


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
def test_equals_scipy_permutation_with_ties(zeros):
    d = np.array([0.1, -0.1, 0.2, 0.2, 0.0, 0.5, -0.4, 0.5, 0.0])
    reference = stats.wilcoxon(d, zero_method=zeros, method=stats.PermutationMethod(n_resamples=np.inf))
    assert signed_rank(d[None], zeros).p[0] == pytest.approx(reference.pvalue, abs=1e-12)


@pytest.mark.parametrize(("n", "smallest"), [(3, 0.25), (4, 0.125), (5, 0.0625), (6, 2**-5), (8, 2**-7), (11, 2**-10)])
def test_smallest_attainable_is_attained(n, smallest):
    test = signed_rank(np.arange(1.0, n + 1)[None])
    assert test.p_min[0] == smallest == test.p[0]
    assert test.rank_biserial[0] == 1.0


def test_smallest_attainable_with_ties_and_zeros_is_the_least_over_all_signs():
    sizes = np.array([0.0, 0.1, 0.1, 0.1, 0.2, 0.2])
    signs = np.array(list(product([-1, 1], repeat=len(sizes))))
    for zeros in ("wilcox", "pratt"):
        test = signed_rank(signs * sizes, zeros)
        assert test.p.min() == test.p_min[0] == 2**-4
        assert set(test.n_zero) == {1}


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


def test_swapping_the_designs_changes_the_sign_only():
    d = np.random.default_rng(5).normal(size=(4, 9))
    there, back = signed_rank(d), signed_rank(-d)
    np.testing.assert_array_equal(there.p, back.p)
    np.testing.assert_array_equal(there.w_plus, back.w_minus)
    np.testing.assert_array_equal(there.rank_biserial, -back.rank_biserial)


def test_midranks_equal_scipy_across_blocks():
    values = np.random.default_rng(1).integers(0, 40, size=(300, 150)).astype(float)  # two blocks
    np.testing.assert_array_equal(doubled_midranks(values), 2 * stats.rankdata(values, axis=1))


def test_null_of_many_tasks_keeps_its_precision():
    """At n = 400 a p near the normal one, and the two halves of the distribution add to one."""
    ranks = tuple(range(2, 802, 2))
    tail = null_lower_tail(ranks)
    mean, sd = 400 * 401 / 4, np.sqrt(400 * 401 * 801 / 24)
    at = int(mean - 2 * sd)
    assert tail[2 * at] == pytest.approx(stats.norm.cdf((at + 0.5 - mean) / sd), rel=2e-3)
    below = tail[2 * int(mean) - 2]  # P(W <= mean - 1) twice and P(W = mean) make 1
    assert 2 * below + (tail[2 * int(mean)] - below) == pytest.approx(1.0, abs=1e-12)


def test_five_percent_of_null_tables_at_most_pass():
    """The level holds: over all sign patterns of fixed sizes, P(p <= .05) is at most .05, and not idle."""
    sizes = np.array([1.0, 2, 2, 3, 4, 5, 5, 6, 7, 8])
    signs = np.array(list(product([-1, 1], repeat=len(sizes))))
    share = (signed_rank(signs * sizes).p <= 0.05).mean()
    assert 0.03 < share <= 0.05
