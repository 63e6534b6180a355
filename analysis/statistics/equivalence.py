"""Equivalence of two designs within a margin: two one-sided signed-rank tests of the shifted differences."""

from dataclasses import dataclass

import numpy as np

from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.intervals import hodges_lehmann
from analysis.statistics.wilcoxon import p_above_zero


@dataclass(frozen=True)
class Equivalence:
    """Results for P pairs, each field an array of length P.

    `p_above`: of the test that the centre is above -margin; `p_below`: that it is below the margin; `p`: the larger,
    that of both together. `p_min`: the smallest p that so many tasks allow. `low`, `high`: the Hodges-Lehmann interval
    of level 1 - 2 alpha; `confidence`: what it attains, 1 where its ends are infinite.
    """

    p_above: Floats
    p_below: Floats
    p: Floats
    p_min: Floats
    low: Floats
    high: Floats
    confidence: Floats


def equivalence(
    differences: Floats, margin: float, alpha: float = 0.05, zeros: str = "wilcox", decimals: int = 12
) -> Equivalence:
    """Test whether the centre of each row of `differences` [P, n] lies within (-margin, margin).

    Two one-sided tests (Schuirmann 1987): the exact signed-rank test of the differences shifted by the margin, upwards
    and downwards. Where the distribution is symmetric about a centre at the margin or beyond it, both reject at `alpha`
    with a probability of at most alpha. Without ties they do exactly where the Hodges-Lehmann interval of level
    1 - 2 alpha lies within the margin.
    """
    d = rounded(differences, decimals)
    above, below = p_above_zero(d + margin, zeros, decimals), p_above_zero(margin - d, zeros, decimals)
    p_min = np.full(len(d), 2.0 ** -d.shape[1] if margin > 0 else 1.0)
    centre = hodges_lehmann(d, max(0.0, 1 - 2 * alpha))
    return Equivalence(above, below, np.maximum(above, below), p_min, centre.low, centre.high, centre.confidence)
