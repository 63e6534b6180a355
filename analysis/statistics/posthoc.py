"""After Friedman: which designs differ in average rank.

Both tests look at average ranks, so what they say of two designs depends on which others are in the table (Benavoli,
Corani, Mangili 2016, JMLR 17); the signed-rank test of a pair does not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.correction import holm
from analysis.statistics.ranks import rank_error

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AgainstControl:
    """One entry a design, in the order given; z, p and p_holm are nan for the control itself."""

    z: Floats
    p: Floats
    p_holm: Floats


def against_control(averages: Floats, n: int, control: int) -> AgainstControl:
    """Compare k average ranks over n tasks with that at position `control` (Demsar 2006, section 3.2.2).

    z = (R_j - R_control) / sqrt(k (k + 1) / (6 n)), below zero where design j ranks better; two-sided normal p; Holm
    over the k - 1 comparisons.
    """
    from scipy.stats import norm

    k = len(averages)
    others = np.arange(k) != control
    z = np.where(others, (averages - averages[control]) / rank_error(k, n), np.nan)
    p = 2 * norm.sf(np.abs(z))
    adjusted = np.full(k, np.nan)
    adjusted[others] = holm(p[others])
    return AgainstControl(z, p, adjusted)


def nemenyi_p(differences: Floats, k: int, n: int) -> Floats:
    """Return Nemenyi's p of differences of average ranks, corrected for all k (k - 1) / 2 pairs (Demsar 2006, 3.2.2).

    P(range of k standard normals > sqrt(2) |difference| / standard error), from the studentized range.
    """
    from scipy.stats import studentized_range

    steps = np.rint(np.abs(differences) * 2 * n)  # average ranks are multiples of 1 / (2 n): each one once
    values, which = np.unique(steps, return_inverse=True)
    p = studentized_range.sf(np.sqrt(2) * values / (2 * n) / rank_error(k, n), k, np.inf)
    return np.asarray(np.clip(p, 0, 1)[which], dtype=np.float64)
