"""Holm against statsmodels."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from analysis.statistics.correction import holm, passes


@pytest.mark.parametrize("size", [1, 2, 10, 300])
def test_it_is_that_of_statsmodels(size):
    p = np.round(np.random.default_rng(size).uniform(0, 0.3, size) ** 2, 3)  # rounded: ties
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=0, atol=1e-15)


def test_alpha_itself_passes():
    assert passes(np.array([3 * 0.1 / 6, 0.0501]), 0.05).tolist() == [True, False]
