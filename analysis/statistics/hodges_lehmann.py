"""The Hodges-Lehmann difference: the median of all Walsh averages, with its exact distribution-free interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.signed_rank_null import EXACT_UP_TO, largest_within

Floats = NDArray[np.float64]

AVERAGES_AT_ONCE = 4_000_000
FEW = 4  # averages per value that are laid out, beyond EXACT_UP_TO values


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
    beyond them k follows from the normal curve, and the averages sought are found without laying out all of them.
    """
    count, n = differences.shape
    outside, below = largest_within(n, (1 - level) / 2)
    total = n * (n + 1) // 2
    places = [(total - 1) // 2, total // 2, *([outside, total - 1 - outside] if outside >= 0 else [])]
    found = np.empty((count, len(places)))
    if n > EXACT_UP_TO:
        for row, own in enumerate(differences):
            found[row] = walsh_averages_at(own, places)
    else:
        i, j = np.triu_indices(n)
        block = max(1, AVERAGES_AT_ONCE // len(i))
        for start in range(0, count, block):
            rows = slice(start, start + block)
            averages = np.sort((differences[rows][:, i] + differences[rows][:, j]) / 2, axis=1)
            found[rows] = averages[:, places]
    low, high = (found[:, 2], found[:, 3]) if outside >= 0 else (np.full(count, -np.inf), np.full(count, np.inf))
    return HodgesLehmann((found[:, 0] + found[:, 1]) / 2, low, high, 1.0 - 2.0 * below)


def walsh_averages_at(values: Floats, places: list[int]) -> list[float]:
    """Return the Walsh averages of `values` [n] at these places (from 0) of their ascending order.

    How many averages are at most v follows from sorted values in n log n steps. Two numbers are moved towards each
    place until few averages lie between them, and those alone are laid out.
    """
    ordered = np.sort(values)
    found: list[float] = []
    below = up_to = 0  # averages at most low, at most high
    for place in places:
        if not below <= place < up_to:  # else the numbers of the place before serve again
            low, high = -np.inf, float(ordered[-1])
            below, up_to = 0, len(ordered) * (len(ordered) + 1) // 2
        halve = False
        while up_to - below > FEW * len(ordered):
            start = float(ordered[0]) if np.isinf(low) else low
            share = 0.5 if halve else (place + 0.5 - below) / (up_to - below)
            middle = start + (high - start) * share
            if not low < middle < high:
                break
            count = int((_reached(ordered, middle) - np.arange(len(ordered))).sum())
            before = up_to - below
            low, below, high, up_to = (low, below, middle, count) if count > place else (middle, count, high, up_to)
            halve = up_to - below > before / 4
        found.append(_between(ordered, low, high, place - below))
    return found


def _reached(ordered: Floats, v: float) -> NDArray[np.intp]:
    """Return [n]: for each i the first j >= i with (x_i + x_j) / 2 above v; the values are ascending."""
    return np.maximum(np.searchsorted(ordered, 2 * v - ordered, side="right"), np.arange(len(ordered)))


def _between(ordered: Floats, low: float, high: float, place: int) -> float:
    """Return the average at `place` of those above low and at most high; high where its equals are too many."""
    start, stop = _reached(ordered, low), _reached(ordered, high)
    counts = stop - start
    if counts.sum() > FEW * len(ordered):
        return high
    first = np.repeat(np.arange(len(ordered)), counts)
    second = np.arange(len(first)) + np.repeat(start - np.cumsum(counts) + counts, counts)
    return float(np.partition((ordered[first] + ordered[second]) / 2, place)[place])
