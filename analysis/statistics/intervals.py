"""Intervals of a difference: Student's of the mean, Hodges and Lehmann's of the typical one.

The typical difference of a pair is the estimate that belongs to its signed-rank test.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from analysis.statistics.arrays import DECIMALS, Floats, blocks, rounded
from analysis.statistics.correction import passes
from analysis.statistics.wilcoxon import SignedRank, largest_within

NOISE = 1e-12  # of the largest difference: a smaller spread is what rounding leaves of equal values
AVERAGES_AT_ONCE = 500_000


def student_interval(differences: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the ends [P] of the interval of the mean of each row of `differences` [P, n] (Student 1908): nan for one
    task, and the mean itself where the differences do not vary."""
    mean, error = mean_and_error(differences)
    reach = student_reach(error, max(1, differences.shape[1] - 1), level)
    return mean - reach, mean + reach


def student_reach(error: Floats, freedom: Floats | float, level: float) -> Floats:
    """Return half the length of Student's interval from standard errors and degrees of freedom; 0 without error."""
    return np.where(error > 0, stdtrit(freedom, (1 + level) / 2) * error, error)  # error is 0 or nan elsewhere


def mean_and_error(differences: Floats) -> tuple[Floats, Floats]:
    """Return the mean [P] of each row of [P, n] and its standard error [P]: 0 without spread, nan for one task."""
    count, n = differences.shape
    mean = differences.mean(axis=1)
    if n < 2:
        return mean, np.full(count, np.nan)
    spread = differences.std(axis=1, ddof=1)
    spread = np.where(spread > NOISE * np.abs(differences).max(axis=1), spread, 0.0)
    return mean, np.asarray(spread / np.sqrt(n), dtype=np.float64)


@dataclass(frozen=True)
class HodgesLehmann:
    """The estimate of P pairs and the ends of its interval, each [P]; with too few tasks the ends are infinite."""

    estimate: Floats
    low: Floats
    high: Floats


def hodges_lehmann(differences: Floats, level: float = 0.95) -> HodgesLehmann:
    """Estimate the centre of each row of `differences` [P, n], zeros included, and invert the signed-rank test.

    A Walsh average is the mean of two differences, or one of them (n (n + 1) / 2 in all). With k the largest number
    for which P(W+ <= k) <= (1 - level) / 2 without ties, the (k + 1)-th smallest and the (k + 1)-th largest average
    bound the centre of any symmetric distribution with confidence 1 - 2 P(W+ <= k), with ties at least that
    (Hodges and Lehmann 1963; Hollander and Wolfe 1973, section 3.3; ties: Noether 1967).
    """
    count, n = differences.shape
    outside = largest_within(n, (1 - level) / 2)
    total = n * (n + 1) // 2
    places = [(total - 1) // 2, total // 2, *([outside, total - 1 - outside] if outside >= 0 else [])]
    averages = np.empty((count, len(places)))
    ordered = np.sort(differences, axis=1)  # of sorted differences the averages are parted in half the time
    for rows in blocks(count, AVERAGES_AT_ONCE // total):
        doubled = np.concatenate([ordered[rows, k:] + ordered[rows, k : k + 1] for k in range(n)], axis=1)
        doubled.partition(places, axis=1)
        averages[rows] = doubled[:, places] / 2
    low, high = (averages[:, 2], averages[:, 3]) if outside >= 0 else (np.full(count, -np.inf), np.full(count, np.inf))
    return HodgesLehmann((averages[:, 0] + averages[:, 1]) / 2, low, high)


def typical_difference(differences: Floats, test: SignedRank, alpha: float = 0.05) -> HodgesLehmann:
    """Return the Hodges-Lehmann difference of each row of `differences` [P, n] and the interval that belongs to `test`.

    The test drops differences of zero, so they are left out here too (as R's wilcox.test does). Then W+ - W- is the
    number of Walsh averages above zero less that below it, and the estimate never has the sign against which the test
    speaks.

    The interval of level 1 - alpha leaves out 0 exactly where the test passes at `alpha`, uncorrected. Without ties and
    zeros it does so by itself. With them the test at 0 knows of ties that the interval does not: where the two would
    differ, the end is moved to 0, or, since it is open there, half a unit of `DECIMALS` beyond it.
    """
    d = rounded(differences) + 0.0  # -0. is 0.
    count, n = d.shape
    estimate, low, high = np.zeros(count), np.full(count, -np.inf), np.full(count, np.inf)
    for zero in np.unique(test.n_zero[test.n_zero < n]).tolist():
        rows = np.flatnonzero(test.n_zero == zero)
        kept = d[rows][d[rows] != 0].reshape(len(rows), -1) if zero else d[rows]
        centre = hodges_lehmann(kept, 1 - alpha)
        estimate[rows], low[rows], high[rows] = centre.estimate, centre.low, centre.high
    low, high = _agreeing_at_zero(low, high, test, alpha, 0.5 * 10.0**-DECIMALS)
    return HodgesLehmann(estimate, low, high)


def _agreeing_at_zero(low: Floats, high: Floats, test: SignedRank, alpha: float, step: float) -> tuple[Floats, Floats]:
    """Return the ends, on the side of the test where it passes and with 0 between them where it does not."""
    passed, up = passes(test.p, alpha), test.w_plus > test.w_minus
    low = np.where(passed & up, np.maximum(low, step), np.where(passed, low, np.minimum(low, 0.0)))
    high = np.where(passed & ~up, np.minimum(high, -step), np.where(passed, high, np.maximum(high, 0.0)))
    return np.where(up, low, np.minimum(low, high)), np.where(up, np.maximum(low, high), high)
