"""The Hodges-Lehmann difference: the median of all Walsh averages, with its exact distribution-free interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.signed_rank_null import EXACT_UP_TO, null_lower_tail

Floats = NDArray[np.float64]

AVERAGES_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class HodgesLehmann:
    """For P pairs: `estimate`, `low` and `high` [P]; `confidence`: what the interval attains, the same for all.

    Where so few tasks attain the level with no finite interval, the ends are infinite and the confidence is 1.
    """

    estimate: Floats
    low: Floats
    high: Floats
    confidence: float


def hodges_lehmann(differences: Floats, level: float = 0.95) -> HodgesLehmann:
    """Estimate the centre of each row of `differences` [P, n], zeros included, and invert the signed-rank test.

    A Walsh average is the mean of two differences, or one of them (n (n + 1) / 2 in all). With k the largest number
    for which P(W+ <= k) <= (1 - level) / 2 without ties, the (k + 1)-th smallest and the (k + 1)-th largest average
    bound the centre of any symmetric distribution with confidence 1 - 2 P(W+ <= k), with ties at least that
    (Hodges and Lehmann 1963; Hollander and Wolfe 1973, section 3.3; ties: Noether 1967). Exact up to 1000 tasks;
    beyond them the ends are infinite.
    """
    count, n = differences.shape
    outside, confidence = _outside(n, level)
    i, j = np.triu_indices(n)
    block = max(1, AVERAGES_AT_ONCE // len(i))
    estimate, low, high = np.empty(count), np.full(count, -np.inf), np.full(count, np.inf)
    for start in range(0, count, block):
        rows = slice(start, start + block)
        averages = np.sort((differences[rows][:, i] + differences[rows][:, j]) / 2, axis=1)
        middle = averages.shape[1] // 2
        estimate[rows] = (averages[:, middle] + averages[:, ~middle]) / 2
        if outside >= 0:
            low[rows], high[rows] = averages[:, outside], averages[:, ~outside]
    return HodgesLehmann(estimate, low, high, confidence)


def _outside(n: int, level: float) -> tuple[int, float]:
    """Return the largest k with P(W+ <= k) <= (1 - level) / 2, -1 where there is none, and the attained confidence."""
    if n > EXACT_UP_TO:
        return -1, 1.0
    tail = null_lower_tail(tuple(range(2, 2 * n + 2, 2)))[::2]  # doubled ranks: every second value is a sum
    k = int(np.searchsorted(tail, (1 - level) / 2 * (1 + 1e-9), side="right")) - 1
    return k, 1.0 - 2.0 * float(tail[k]) if k >= 0 else 1.0
