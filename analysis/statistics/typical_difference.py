"""The typical difference of a pair: the Hodges-Lehmann estimate and interval that belong to its signed-rank test."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.correction import passes
from analysis.statistics.hodges_lehmann import hodges_lehmann
from analysis.statistics.wilcoxon import SignedRank

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TypicalDifference:
    """The estimate of P pairs that belongs to their signed-rank tests, with its interval; each field [P].

    `confidence`: what the interval attains, without ties; 1 where the ends are infinite.
    """

    estimate: Floats
    low: Floats
    high: Floats
    confidence: Floats


def typical_difference(
    differences: Floats, test: SignedRank, alpha: float = 0.05, zeros: str = "wilcox", decimals: int = 12
) -> TypicalDifference:
    """Return the Hodges-Lehmann difference of each row of `differences` [P, n], by the rule of `zeros` of its `test`.

    Under "wilcox" the test drops differences of zero, so they are left out here too (as R's wilcox.test does); under
    "pratt" and "zsplit" they count. Then W+ - W- is the number of Walsh averages above zero less that below it, and
    the estimate never has the sign against which the test speaks. It is 0 under a significant test only where half of
    the averages are not on the test's side: by ties, or by zeros under "pratt" and "zsplit".

    The interval of level 1 - alpha leaves out 0 exactly where the test passes at `alpha`, uncorrected. Without ties and
    zeros it does so by itself. With them the test at 0 knows of ties that the interval does not: where the two would
    differ, the end is moved to 0, or, since it is open there, half a unit of `decimals` beyond it.
    """
    d: Floats = np.asarray(np.round(differences, decimals) + 0.0, dtype=np.float64)
    dropped = test.n_zero if zeros == "wilcox" else np.zeros_like(test.n_zero)
    found = TypicalDifference(np.zeros(len(d)), np.full(len(d), -np.inf), np.full(len(d), np.inf), np.ones(len(d)))
    for count in np.unique(dropped[dropped < d.shape[1]]).tolist():
        rows = np.flatnonzero(dropped == count)
        kept = d[rows][d[rows] != 0].reshape(len(rows), -1) if count else d[rows]
        own = hodges_lehmann(kept, 1 - alpha)
        found.estimate[rows], found.low[rows], found.high[rows] = own.estimate, own.low, own.high
        found.confidence[rows] = own.confidence
    low, high = _agreeing_at_zero(found, test, alpha, 0.5 * 10.0**-decimals)
    return TypicalDifference(found.estimate, low, high, found.confidence)


def _agreeing_at_zero(found: TypicalDifference, test: SignedRank, alpha: float, step: float) -> tuple[Floats, Floats]:
    """Return the ends, on the side of the test where it passes and with 0 between them where it does not."""
    passed, up = passes(test.p, alpha), test.w_plus > test.w_minus
    low = np.where(passed & up, np.maximum(found.low, step), found.low)
    high = np.where(passed & ~up, np.minimum(found.high, -step), found.high)
    low, high = np.where(passed, low, np.minimum(low, 0.0)), np.where(passed, high, np.maximum(high, 0.0))
    return np.where(up, low, np.minimum(low, high)), np.where(up, np.maximum(low, high), high)


def direction(estimate: Floats, test: SignedRank, alpha: float) -> Floats:
    """Return 1, -1 or 0 [P]: the side on which the second design is ahead, by the test where it passes at `alpha`."""
    by_test = np.sign(test.w_plus - test.w_minus)
    return np.where(passes(test.p, alpha), by_test, np.sign(estimate))


def tipping_tasks(differences: Floats, side: float, decimals: int = 12) -> list[int]:
    """Return the positions in `differences` [n] of the fewest tasks that turn their mean against `side` (1 or -1).

    Without them the mean of the others has the sign of `side`; the largest comes first. None where the mean does not
    speak against it, or side is 0.
    """
    turned = np.round(differences, decimals) * side
    if side == 0 or np.round(turned.mean(), decimals) >= 0:
        return []
    order = np.argsort(turned, kind="stable")
    rest = np.cumsum(turned[order][::-1])[::-1]  # the sum of each and of those after it
    count = int(np.argmax(rest > 0.5 * 10.0**-decimals)) if (rest > 0).any() else len(order)
    return [int(task) for task in order[:count]]
