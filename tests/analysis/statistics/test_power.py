"""Power by simulation: against the test itself, closed forms, scipy's null and the normal case."""

import numpy as np
import pytest
from scipy import stats

from analysis.questions.pair_texts import tasks_that_allow
from analysis.statistics.power import (
    SAMPLES,
    Shifted,
    critical_values,
    detectable,
    draws,
    power,
    smallest_n,
    statistics,
    tasks_needed,
)
from analysis.statistics.wilcoxon import signed_rank

SPREAD = np.random.default_rng(5).normal(0.004, 0.02, 30)


@pytest.mark.parametrize("level", [0.05, 0.005])
def test_critical_values_are_the_last_that_scipy_accepts(level):
    limits = critical_values(level)
    for n in (5, 6, 9, 17, 40):
        accepted = [-1]
        for w in range(n * (n + 1) // 2 // 2):
            minus = np.arange(1, n + 1) * 1.0  # ranks that are negative: greedily those that sum to w
            left, signs = w, np.ones(n)
            for rank in minus[::-1]:
                if rank <= left:
                    signs[int(rank) - 1], left = -1, left - rank
            assert left == 0
            if stats.wilcoxon(minus * signs, method="exact").pvalue <= level:
                accepted.append(w)
        assert limits[n] == max(accepted)


@pytest.mark.parametrize("level", [0.05, 0.005, 0.05 / 36046])
def test_fewest_tasks_at_which_anything_can_pass(level):
    assert smallest_n(level) == tasks_that_allow(0.05, round(0.05 / level))
    assert 2 / 2 ** smallest_n(level) <= level < 2 / 2 ** (smallest_n(level) - 1)


def test_statistics_from_counts_equal_those_of_the_samples_themselves():
    values = np.array([0.0, 0.02, -0.02, 0.01, -0.05, 0.03, 0.01])
    counts = draws(7, 12)
    smaller, n = statistics(values, counts)
    samples = np.array([np.repeat(values, row) for row in counts])
    test = signed_rank(samples)
    np.testing.assert_allclose(smaller, np.minimum(test.w_plus, test.w_minus))
    np.testing.assert_array_equal(n, 12 - test.n_zero)


def test_without_an_effect_power_is_the_level():
    both_signs = np.r_[SPREAD, -SPREAD]
    rejected = power(Shifted(both_signs).at(0.0), 0.05)
    assert 0.05 - 4 * np.sqrt(0.05 * 0.95 / SAMPLES) < rejected < 0.05 + 4 * np.sqrt(0.05 * 0.95 / SAMPLES)


def test_power_of_a_normal_spread_is_near_that_of_the_t_test():
    """The relative efficiency of the signed-rank test is 3/pi: its power at n is near that of t at .955 n."""
    quantiles = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    pair = Shifted(quantiles / quantiles.std(ddof=1) * 0.02)
    n = 40 * 3 / np.pi
    t = stats.t.ppf(0.975, n - 1)
    expected = stats.nct.sf(t, n - 1, 0.01 / 0.02 * np.sqrt(n))
    assert power(pair.at(0.01), 0.05) == pytest.approx(expected, abs=0.03)
    found = detectable(pair, 0.05)
    assert power(pair.at(found), 0.05) >= 0.8 > power(pair.at(found - 0.0005), 0.05)
    assert found == pytest.approx(0.02 * 2.80 / np.sqrt(n), rel=0.06)  # 1.96 + .84


def test_tasks_needed_is_where_the_power_reaches_eighty_per_cent():
    pair = Shifted(SPREAD)
    needed = tasks_needed(pair.at(0.01), 0.05)
    assert power(pair.at(0.01), 0.05, int(needed)) >= 0.8 > power(pair.at(0.01), 0.05, int(needed) - 2)
    assert tasks_needed(pair.at(0.01), 0.005) > needed
    assert np.isnan(tasks_needed(pair.at(0.0002), 0.05))
    assert tasks_needed(np.full(30, 0.01), 0.05) == 6  # always the same sign: as soon as anything can pass
