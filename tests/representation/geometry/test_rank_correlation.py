"""Spearman's rho against scipy, its interval against the formula, against simulation, and at its ends."""

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from representation.geometry.relation import least_told, spearman


def test_rho_is_scipys_also_with_ties():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, size=(2, 14))
    assert spearman(x, y).rho == pytest.approx(spearmanr(x, y).statistic)


def test_interval_is_bonett_and_wrights():
    x = np.arange(10.0)
    y = np.array([2, 1, 4, 3, 0, 6, 8, 7, 5, 9.0])
    found = spearman(x, y, alpha=0.1)
    z, error = np.arctanh(found.rho), np.sqrt((1 + found.rho**2 / 2) / 7)
    ends = np.tanh([z - norm.ppf(0.95) * error, z + norm.ppf(0.95) * error])
    assert [found.low, found.high] == pytest.approx(ends)


def test_unrelated_cells_are_told_as_related_about_as_often_as_the_level_says():
    rng = np.random.default_rng(0)
    told = [spearman(*rng.normal(size=(2, 8))).told for _ in range(2000)]
    assert 0.03 < np.mean(told) < 0.11  # nominal .05; the approximation is a little short with eight cells


def test_few_cells_tell_nothing():
    assert not spearman([1, 2, 3], [1, 2, 3]).told
    assert np.isnan(spearman([1, 2], [1, 2]).rho)
    assert np.isnan(spearman([1, 1, 1, 1], [1, 2, 3, 4]).rho)
    five = spearman([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert (five.rho, five.high, five.n) == (pytest.approx(1), pytest.approx(1), 5)
    assert five.low < 1
    assert not spearman([1, 2, 3, 4], [1, 2, 3, 4]).told  # four cells cannot tell even a perfect order


@pytest.mark.parametrize("n", [6, 9])
def test_least_rho_that_so_many_cells_can_tell(n):
    """Over every ranking near the identity: told exactly from this rho on."""
    least, rng = least_told(n), np.random.default_rng(0)
    for _ in range(300):
        found = spearman(np.arange(n), np.argsort(np.arange(n) + rng.normal(size=n) * rng.uniform(0, 3)))
        assert found.told == (abs(found.rho) > least - 1e-9)
    assert least_told(3) is None
    assert least_told(4) is None
