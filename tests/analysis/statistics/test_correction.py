"""Holm and Benjamini-Hochberg against statsmodels, closed testing and their definition."""

from itertools import combinations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from analysis.statistics.correction import CORRECTIONS, bh, holm, passes


@pytest.mark.parametrize("size", [1, 2, 10, 300])
def test_both_equal_statsmodels(size):
    p = np.round(np.random.default_rng(size).uniform(0, 0.3, size) ** 2, 3)  # rounded: ties
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(bh(p), multipletests(p, method="fdr_bh")[1], rtol=0, atol=1e-15)


def test_holm_equals_closed_testing_by_bonferroni():
    """Holm is the closed test whose local test is Bonferroni: the largest local p over all sets that hold i."""
    p = np.array([0.04, 0.001, 0.02, 0.02, 0.6])
    for i in range(len(p)):
        sets = [s for k in range(1, 6) for s in combinations(range(5), k) if i in s]
        assert holm(p)[i] == pytest.approx(max(min(1, len(s) * p[list(s)].min()) for s in sets))


@pytest.mark.parametrize("size", [1, 2, 10, 300])
def test_bh_is_its_definition(size):
    p = np.round(np.random.default_rng(size).uniform(0, 0.3, size) ** 2, 3)
    steps = {v: v * size / (p <= v).sum() for v in p}  # the least over all at least as large
    assert bh(p).tolist() == pytest.approx([min(1, *(s for w, s in steps.items() if w >= v)) for v in p])


@pytest.mark.parametrize("name", ["holm", "bh"])
def test_no_adjusted_p_falls_when_any_p_grows(name):
    """What `reachable` rests on: p >= floor everywhere gives adjusted p >= adjusted floor everywhere."""
    rng, correct = np.random.default_rng(7), CORRECTIONS[name]
    for _ in range(3000):
        size = int(rng.integers(1, 9))
        floor = rng.choice([2.0**-k for k in range(1, 9)], size)  # as tasks and zeros allow: with ties
        p = np.minimum(1.0, floor * rng.choice([1, 1, 1, 2, 3, 16], size))
        assert (correct(p) >= correct(floor) - 1e-15).all(), (floor, p)


def test_alpha_itself_passes():
    assert passes(np.array([3 * 0.1 / 6, 0.0501]), 0.05).tolist() == [True, False]
