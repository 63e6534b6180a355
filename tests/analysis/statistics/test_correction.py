"""Holm, Shaffer and Benjamini-Hochberg against statsmodels, closed testing and all groupings of designs."""

from itertools import combinations, product

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from analysis.statistics.correction import CORRECTIONS, Family, bh, holm, passes, shaffer


@pytest.mark.parametrize("size", [1, 2, 10, 300])
def test_holm_equals_statsmodels(size):
    p = np.round(np.random.default_rng(size).uniform(0, 0.3, size) ** 2, 3)  # rounded: ties
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=0, atol=1e-15)


def test_holm_equals_closed_testing_by_bonferroni():
    """Holm is the closed test whose local test is Bonferroni: the largest local p over all sets that hold i."""
    p = np.array([0.04, 0.001, 0.02, 0.02, 0.6])
    for i in range(len(p)):
        sets = [s for k in range(1, 6) for s in combinations(range(5), k) if i in s]
        assert holm(p)[i] == pytest.approx(max(min(1, len(s) * p[list(s)].min()) for s in sets))


def groupings(k):
    """All sets of pairs that are equal in some grouping of k designs, as places among the pairs."""
    pairs = list(combinations(range(k), 2))
    return {frozenset(i for i, (a, b) in enumerate(pairs) if of[a] == of[b]) for of in product(range(k), repeat=k)}


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_shaffer_equals_counting_all_groupings_and_lies_between_holm_and_closed_testing(k):
    sets, rng = groupings(k), np.random.default_rng(k)
    for _ in range(20):
        p = rng.uniform(0, 0.1, k * (k - 1) // 2)
        order, wanted, largest = np.argsort(p), np.empty_like(p), 0.0
        for step, i in enumerate(order):
            largest = max(largest, p[i] * max(len(s) for s in sets if len(s) <= len(p) - step))
            wanted[i] = min(1.0, largest)
        np.testing.assert_allclose(shaffer(p), wanted, rtol=0, atol=1e-15)
        closed = [max(min(1, len(s) * p[list(s)].min()) for s in sets if i in s) for i in range(len(p))]
        assert (shaffer(p) <= holm(p) + 1e-15).all()
        assert (shaffer(p) >= np.array(closed) - 1e-15).all()  # Bergmann and Hommel's


def test_shaffer_of_two_types_adds_what_each_allows():
    """Three designs on two types: 0, 1 or 3 pairs of each can be equal, so 0 to 4 or 6 together."""
    p = np.linspace(0.001, 0.006, 6)
    assert shaffer(p, 2) == pytest.approx(np.maximum.accumulate(p * [6, 4, 4, 3, 2, 1]))


@pytest.mark.parametrize("size", [1, 2, 10, 300])
def test_bh_equals_statsmodels_and_its_definition(size):
    p = np.round(np.random.default_rng(size).uniform(0, 0.3, size) ** 2, 3)
    np.testing.assert_allclose(bh(p), multipletests(p, method="fdr_bh")[1], rtol=0, atol=1e-15)
    steps = {v: v * size / (p <= v).sum() for v in p}  # the least over all at least as large
    assert bh(p).tolist() == pytest.approx([min(1, *(s for w, s in steps.items() if w >= v)) for v in p])


@pytest.mark.parametrize("name", ["holm", "bh", "shaffer"])
def test_no_adjusted_p_falls_when_any_p_grows(name):
    """What `reachable` rests on: p >= floor everywhere gives adjusted p >= adjusted floor everywhere."""
    rng, correct = np.random.default_rng(7), CORRECTIONS[name]
    for _ in range(3000):
        size = int(rng.choice([1, 3, 6, 10]) if name == "shaffer" else rng.integers(1, 9))
        floor = rng.choice([2.0**-k for k in range(1, 9)], size)  # as tasks and zeros allow: with ties
        p = np.minimum(1.0, floor * rng.choice([1, 1, 1, 2, 3, 16], size))
        assert (correct(p, Family()) >= correct(floor, Family()) - 1e-15).all(), (floor, p)


def test_none_is_a_copy():
    p = np.array([0.2, 0.1])
    assert CORRECTIONS["none"](p, Family()).tolist() == [0.2, 0.1]
    assert CORRECTIONS["none"](p, Family()) is not p


def test_alpha_itself_passes():
    assert passes(np.array([3 * 0.1 / 6, 0.0501]), 0.05).tolist() == [True, False]
