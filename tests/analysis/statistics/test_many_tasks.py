"""Approximations beyond the numbers of tasks for which the exact is worked out: they agree where both are to be had."""

import numpy as np
import pytest

from analysis.statistics.clusters import cluster_interval, cluster_pairs, membership
from analysis.statistics.power import MOST_TASKS, Shifted, critical_value, critical_values, detectable, power
from analysis.statistics.sign_flip import RANDOM_FLIPS, flip_means, flips_drawn, random_signs


def test_critical_values_of_the_normal_curve_agree_where_both_are_there():
    n = np.arange(1, MOST_TASKS + 1)
    assert critical_value(0.05, n).tolist() == critical_values(0.05)[1:].tolist()
    exact = critical_values(0.05, 800)[MOST_TASKS + 1 :]
    near = critical_value(0.05, np.arange(MOST_TASKS + 1, 801))
    np.testing.assert_allclose(near, exact, rtol=1e-4)


def test_power_at_the_switch_is_that_of_all_tasks(monkeypatch):
    """800 tasks stood for by 500, and the same 800 simulated as they are."""
    rng = np.random.default_rng(1)
    for drawn in (rng.normal(size=800), rng.standard_t(3, size=800), rng.exponential(size=800)):
        pair = Shifted(0.02 * drawn)
        values = pair.at(0.0015)
        assert len(values) == MOST_TASKS
        stood, level = power(values, 0.05, 800), 0.05
        smallest = detectable(pair, level)
        monkeypatch.setattr("analysis.statistics.power.MOST_TASKS", 900)
        whole = pair.at(0.0015)
        assert len(whole) == 800
        assert stood == pytest.approx(power(whole, level, 800), abs=0.05)
        assert smallest == pytest.approx(detectable(pair, level), rel=0.05)
        monkeypatch.undo()


def test_the_permutation_test_of_many_units_agrees_with_its_random_signs(monkeypatch):
    d = np.random.default_rng(2).standard_t(5, size=(6, 1200)) + np.linspace(0, 0.12, 6)[:, None]
    near = flip_means(d)
    assert (near.flips, near.exact) == (0, False)
    monkeypatch.setattr("analysis.statistics.sign_flip.DRAWN_UP_TO", 2000)
    drawn = flip_means(d)
    assert drawn.flips == 9999
    np.testing.assert_allclose(near.p, drawn.p, atol=4 * np.sqrt(0.25 / 9999))


def test_random_signs_are_bounded_in_number_and_as_before_where_few():
    assert flips_drawn(40) == flips_drawn(2000) == RANDOM_FLIPS
    assert flips_drawn(20_000) == 10_000
    assert flips_drawn(10**6) == 999
    generator = np.random.default_rng(0)
    wanted = 1 - 2 * generator.integers(0, 2, (8192, 40), dtype=np.int8)
    np.testing.assert_array_equal(next(random_signs(40, RANDOM_FLIPS)), wanted)
    assert max(chunk.size for chunk in random_signs(50_000, 999)) <= 20_000_000


def test_thousands_of_clusters_need_no_table_of_all_tasks():
    members = membership([f"c{k // 2}" for k in range(40_000)])
    d = np.random.default_rng(4).normal(0.001, 0.02, (1, 40_000))
    low, high = cluster_interval(d, members)[0]
    assert low < d.mean() < high
    means = d.reshape(1, -1, 2).mean(axis=2)
    assert cluster_pairs(d, members).difference[0] == pytest.approx(means.mean())
