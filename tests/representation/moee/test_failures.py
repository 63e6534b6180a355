"""Failures counted pair by pair."""

import numpy as np
import pytest

from representation.moee.clusters import deviation, shares


def test_deviations_by_hand():
    """True ranks 1.5 1.5 3.5 3.5 (two labels), found 1 3 2 4."""
    found = deviation(np.array([0.1, 0.5, 0.3, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    assert found.tolist() == [0.125, 0.375, 0.375, 0.125]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.6])
def test_shares_by_counting(threshold):
    rng = np.random.default_rng(0)
    one, other = rng.random(50), rng.random(50)
    found = shares(one, other, threshold)
    failed = [(a > threshold, b > threshold) for a, b in zip(one, other, strict=True)]
    some = [pair for pair in failed if any(pair)]
    assert found["pairs"] == len(some)
    assert found["one_alone"] == pytest.approx(some.count((True, False)) / len(some))
    assert found["other_alone"] == pytest.approx(some.count((False, True)) / len(some))
    assert found["one_alone"] + found["other_alone"] + found["both"] == pytest.approx(1)


def test_independent_failures_are_as_expected():
    """Every combination of two failures once in its share: 2 of 10 and 5 of 10 fail."""
    a, b = (np.array(x, dtype=float) for x in zip(*((i < 2, j < 5) for i in range(10) for j in range(10)), strict=True))
    found = shares(a, b, 0.5)
    assert found["one_alone"] + found["other_alone"] == pytest.approx(found["independent"])
    assert np.isnan(shares(np.zeros(4), np.zeros(4), 0.5)["both"])
