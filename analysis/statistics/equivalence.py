"""Equivalence of two designs within a margin: two one-sided signed-rank tests, and the posterior of the mean.

docs/decisions/equivalence.md gives the reasons.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.intervals import hodges_lehmann, mean_and_error
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
    above, below = one_sided(d, margin, zeros, decimals)
    p_min = np.full(len(d), 2.0 ** -d.shape[1] if margin > 0 else 1.0)
    centre = hodges_lehmann(d, max(0.0, 1 - 2 * alpha))
    return Equivalence(above, below, np.maximum(above, below), p_min, centre.low, centre.high, centre.confidence)


def one_sided(
    differences: Floats,
    margin: float,
    zeros: str = "wilcox",
    decimals: int = 12,
    near: tuple[float, float] | None = None,
) -> tuple[Floats, Floats]:
    """Return p [P] of the tests that the centre of each row is above -margin, and that it is below the margin.

    near: see `wilcoxon.lower_tail`.
    """
    d = rounded(differences, decimals)
    return p_above_zero(d + margin, zeros, decimals, near), p_above_zero(margin - d, zeros, decimals, near)


def mean_posterior(differences: Floats, margin: float, decimals: int = 12) -> dict[str, Floats]:
    """Return the posterior probabilities [P] that the mean of each row of `differences` [P, n] is `worse` than -margin,
    `equivalent` (within the margin) or `better`. They add up to 1; nan for one task.

    With the prior of Jeffreys for a normal sample, flat in the mean and in the logarithm of the spread, the posterior
    of the mean is Student's t with n - 1 degrees of freedom about the mean seen, with its standard error (Box and Tiao
    1973, section 2.4). Its middle 95 % are `student_interval`. Without spread all of it lies at the mean seen; a mean
    on the edge belongs to the region.
    """
    mean, error = mean_and_error(rounded(differences, decimals))
    freedom = max(1, differences.shape[1] - 1)
    seen = np.round(mean, decimals)
    with np.errstate(divide="ignore", invalid="ignore"):
        worse = np.where(error == 0, seen < -margin, stdtr(freedom, (-margin - mean) / error))
        better = np.where(error == 0, seen > margin, stdtr(freedom, (mean - margin) / error))
    return {"worse": worse, "equivalent": 1.0 - worse - better, "better": better}
