"""Sizes, intervals and other tests of a pair, each against a second implementation or enumeration."""

from itertools import product
from time import process_time

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import cross_checks as module
from analysis.statistics.cross_checks import RESAMPLED_PAIRS, cross_checks, paired_t, sign_test
from analysis.statistics.intervals import hodges_lehmann, student_interval, walsh_averages_at
from analysis.statistics.sign_flip import RANDOM_FLIPS, flip_means, sign_flip


def differences(count, n, seed=0, ties=False):
    values = np.random.default_rng(seed).normal(0.02, 0.05, size=(count, n))
    return np.round(values, 2) if ties else values


@pytest.mark.parametrize("n", [1, 2, 5, 6, 9, 40])
def test_hodges_lehmann_is_the_median_of_all_pairwise_means(n):
    d = differences(7, n, ties=True)
    found = hodges_lehmann(d)
    for k, row in enumerate(d):
        averages = [(row[i] + row[j]) / 2 for i in range(n) for j in range(i, n)]
        assert found.estimate[k] == pytest.approx(np.median(averages), abs=1e-15)


@pytest.mark.parametrize("n", [6, 7, 8, 12, 25, 41])
def test_the_interval_holds_the_shifts_that_the_exact_test_does_not_reject(n):
    """A shift just inside either end is kept by scipy's exact test at 5 %, one just outside is rejected."""
    for row, low, high in zip(differences(4, n), *_ends(differences(4, n)), strict=True):
        for end, inward in ((low, 1), (high, -1)):
            assert stats.wilcoxon(row - end - inward * 1e-9, method="exact").pvalue > 0.05
            assert stats.wilcoxon(row - end + inward * 1e-9, method="exact").pvalue <= 0.05


def _ends(d):
    found = hodges_lehmann(d)
    return found.low, found.high


@pytest.mark.parametrize("kind", ["plain", "rounded", "two values", "heavy tails", "equal"])
def test_walsh_averages_found_without_laying_them_out_are_those_of_the_sorted_list(kind):
    rng = np.random.default_rng(7)
    drawn = {
        "plain": rng.normal(size=301),
        "rounded": np.round(rng.normal(size=300), 1),
        "two values": rng.integers(0, 2, 300) / 10,
        "heavy tails": rng.standard_cauchy(300),
        "equal": np.full(200, 0.1),
    }[kind]
    i, j = np.triu_indices(len(drawn))
    averages = np.sort((drawn[i] + drawn[j]) / 2)
    places = [0, 17, len(averages) // 3, len(averages) // 2, len(averages) // 2 + 1, len(averages) - 1]
    np.testing.assert_allclose(walsh_averages_at(drawn, places), averages[places], rtol=1e-13, atol=1e-16)


def test_more_than_a_thousand_tasks_have_a_finite_interval_in_little_time():
    d = np.random.default_rng(8).normal(0.01, 0.1, size=(1, 20_000))
    began = process_time()
    found = hodges_lehmann(d)
    assert process_time() - began < 10  # laid out, the 200 million averages would take minutes
    error = 0.1 * np.sqrt(np.pi / 3 / 20_000)  # of the estimate for a normal law
    assert found.estimate[0] == pytest.approx(0.01, abs=4 * error)
    assert (found.high - found.low)[0] == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert found.confidence[0] == pytest.approx(0.95, abs=1e-4)


@pytest.mark.parametrize("n", [6, 8, 10])
def test_attained_confidence_is_the_share_of_sign_patterns_that_cover_zero(n):
    sizes = np.sort(np.random.default_rng(n).uniform(0.1, 1, n))
    found = hodges_lehmann(np.array(list(product([-1, 1], repeat=n))) * sizes)
    covered = ((found.low <= 0) & (found.high >= 0)).mean()
    assert covered == pytest.approx(found.confidence[0], abs=1e-12)
    assert found.confidence[0] >= 0.95


def test_with_ties_the_interval_covers_at_least_as_often():
    for sizes in ([0.1, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3], [0.1] * 6, [0.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.3, 0.4]):
        found = hodges_lehmann(np.array(list(product([-1, 1], repeat=len(sizes)))) * sizes)
        assert ((found.low <= 0) & (found.high >= 0)).mean() >= found.confidence[0] >= 0.95


@pytest.mark.parametrize("n", [1, 3, 4, 5])
def test_where_n_is_too_small_the_ends_are_infinite(n):
    found = hodges_lehmann(differences(2, n))
    assert found.low.tolist() == [-np.inf] * 2
    assert found.high.tolist() == [np.inf] * 2
    assert found.confidence[0] == 1.0
    assert hodges_lehmann(differences(2, 5), level=0.9).confidence[0] == 1 - 2 / 2**5  # which five tasks do attain


@pytest.mark.parametrize(("n", "level"), [(2, 0.95), (5, 0.9), (8, 0.95), (41, 0.99)])
def test_the_interval_of_the_mean_is_students(n, level):
    d = differences(4, n, ties=True) + np.arange(n) / 1e3  # no row without spread
    checks = cross_checks(d, level=level)
    wanted = stats.ttest_1samp(d, 0, axis=1).confidence_interval(level)
    np.testing.assert_allclose((checks["mean_low"], checks["mean_high"]), (wanted.low, wanted.high), rtol=1e-9)


def test_the_interval_of_what_does_not_vary_is_a_point_and_one_task_has_none():
    low, high = student_interval(np.array([[0.1] * 8, [0.0] * 8, [0.3 - 0.1, 0.2] * 4]))
    assert low.tolist() == high.tolist() == pytest.approx([0.1, 0.0, 0.2])
    assert np.isnan(student_interval(differences(2, 1))).all()


def test_the_interval_of_the_mean_holds_it_with_eight_tasks_of_unequal_spread():
    """Spreads that differ by a factor of ten: the bootstrap-t held the mean in 91 % of such samples."""
    spread = np.geomspace(1, 10, 8)
    found = cross_checks(np.random.default_rng(2).normal(size=(RESAMPLED_PAIRS, 8)) * spread)
    names = next(pair for pair in (("mean_low", "mean_high"), ("boot_low", "boot_high")) if pair[0] in found)
    low, high = (found[name] for name in names)
    assert ((low <= 0) & (high >= 0)).mean() > 0.94


@pytest.mark.parametrize("n", [2, 3, 8, 12])
def test_permutation_test_equals_scipy_and_enumeration(n):
    d = differences(5, n, ties=True)
    found = flip_means(d, RANDOM_FLIPS)
    p = found.p
    assert found.exact
    signs = np.array(list(product([-1, 1], repeat=n)))
    for k, row in enumerate(d):
        sums = np.abs(signs @ row)
        assert p[k] == pytest.approx((sums >= abs(row.sum()) - 1e-9).mean(), abs=1e-12)
        reference = stats.permutation_test(
            (row, np.zeros(n)), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples"
        )
        assert p[k] == pytest.approx(reference.pvalue, abs=1e-12)


@pytest.mark.parametrize("n", [10, 30])
def test_permutation_test_equals_the_sign_flip_of_one_pair(n):
    d = differences(4, n)
    found = flip_means(d, RANDOM_FLIPS)
    for k, row in enumerate(d):
        one = sign_flip(row[:, None])
        assert (found.p[k], found.exact) == (one.p, one.exact)


def test_sign_test_equals_binomtest():
    d = differences(40, 9, ties=True)
    expected = [stats.binomtest(int((r > 0).sum()), max(1, int((r != 0).sum()))).pvalue for r in d]
    np.testing.assert_allclose(sign_test(d), expected, rtol=1e-12)
    assert sign_test(np.zeros((1, 4))).tolist() == [1.0]


def test_paired_t_equals_ttest_rel():
    first, second = np.random.default_rng(1).uniform(size=(2, 6, 9))
    expected = [stats.ttest_rel(b, a).pvalue for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(paired_t(second - first), expected, rtol=1e-9)
    assert np.isnan(paired_t(np.array([[0.1, 0.1], [0.0, 0.0]]))).all()
    assert np.isnan(paired_t(np.array([[0.1]]))).all()


def test_nothing_is_resampled_beyond_the_stated_number_of_pairs(monkeypatch):
    monkeypatch.setattr(module, "RESAMPLED_PAIRS", 4)
    few, many = cross_checks(differences(4, 8)), cross_checks(differences(5, 8))
    assert not np.isnan(few["p_permutation"]).any()
    np.testing.assert_array_equal(many["mean_low"][:4], few["mean_low"])
    assert np.isnan(many["p_permutation"]).all()
    np.testing.assert_array_equal(many["p_sign"][:4], few["p_sign"])
