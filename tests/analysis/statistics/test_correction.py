"""Holm against statsmodels and closed testing."""

from itertools import combinations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from analysis.statistics.correction import holm, passes


@pytest.mark.parametrize("size", [1, 2, 10, 300])
def test_it_is_that_of_statsmodels(size):
    p = np.round(np.random.default_rng(size).uniform(0, 0.3, size) ** 2, 3)  # rounded: ties
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=0, atol=1e-15)


def test_holm_equals_closed_testing_by_bonferroni():
    """Holm is the closed test whose local test is Bonferroni: the largest local p over all sets that hold i."""
    p = np.array([0.04, 0.001, 0.02, 0.02, 0.6])
    for i in range(len(p)):
        sets = [s for k in range(1, 6) for s in combinations(range(5), k) if i in s]
        assert holm(p)[i] == pytest.approx(max(min(1, len(s) * p[list(s)].min()) for s in sets))


def test_alpha_itself_passes():
    assert passes(np.array([3 * 0.1 / 6, 0.0501]), 0.05).tolist() == [True, False]
