"""Holm's correction for many tests."""

import numpy as np

from analysis.statistics.arrays import Bools, Floats


def holm(p: Floats) -> Floats:
    """Return Holm's step-down adjusted p-values (Holm 1979), in the order given.

    The k-th smallest of m is multiplied by m - k + 1; a running maximum keeps the order; at most 1. statsmodels'
    `multipletests` gives the same, but collects garbage at every call, which takes a tenth of a second.
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def passes(p: Floats, alpha: float) -> Bools:
    """Tell whether p <= alpha, forgiving float noise: 10 x .005 is .05."""
    return p <= alpha * (1 + 1e-9)
