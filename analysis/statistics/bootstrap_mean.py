"""The bootstrap-t interval of the mean difference over tasks. Why this bootstrap: docs/decisions/pair-statistics.md."""

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.resample import DRAWS, bootstrap_counts

Floats = NDArray[np.float64]

RESAMPLES = DRAWS
FEWEST = 6  # tasks: fewer have too few distinct resamples for 2.5 % in each tail
PAIRS_AT_ONCE = 400


def bootstrap_mean(differences: Floats, level: float = 0.95, draws: int = RESAMPLES) -> tuple[Floats, Floats]:
    """Return the ends [P] of the interval of the mean of each row of `differences` [P, n].

    Tasks are drawn with replacement, `draws` times from a fixed seed, the same for every pair. Each resample gives
    t* = (its mean - the mean) / its standard error; the interval is mean - t*(upper) x error to mean - t*(lower) x
    error (Efron and Tibshirani 1993, section 12.5; Hall 1992). A resample without spread has an infinite t*. The ends
    are nan below six tasks, and both are the mean where the differences do not vary.
    """
    count, n = differences.shape
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    if n < FEWEST or not draws:
        return low, high
    weights = np.concatenate(list(bootstrap_counts(n, draws)))
    below = tail_place(draws, level)
    for start in range(0, count, PAIRS_AT_ONCE):
        rows = slice(start, start + PAIRS_AT_ONCE)
        d = differences[rows]
        mean = d.mean(axis=1)
        error = d.std(axis=1, ddof=1) / np.sqrt(n)
        t = np.partition(_studentised(d - mean[:, None], weights), [below, draws - 1 - below], axis=1)
        with np.errstate(invalid="ignore"):  # 0 x infinity where nothing varies
            low[rows] = np.where(error > 0, mean - t[:, draws - 1 - below] * error, mean)
            high[rows] = np.where(error > 0, mean - t[:, below] * error, mean)
    return low, high


def tail_place(draws: int, level: float) -> int:
    """Return which of the sorted draws cuts off the lower tail, from 0 (order statistics: Davison and Hinkley 1997)."""
    return max(0, int((draws + 1) * (1 - level) / 2 + 1e-9) - 1)


def _studentised(centred: Floats, weights: Floats) -> Floats:
    """Return t* [P, resamples] of differences less their mean, [P, n]."""
    n = centred.shape[1]
    mean = centred @ weights.T / n
    square = (centred**2) @ weights.T / n
    variance = (square - mean**2) * n / (n - 1)
    spread = variance > 1e-14 * square  # what is left of equal values is rounding
    t = mean / np.sqrt(np.where(spread, variance, np.inf) / n)
    return np.where(spread | (square == 0), t, np.copysign(np.inf, mean))
