"""The null distribution of the signed-rank sum given the ranks: by convolution, beyond a stated n by a normal curve.

Given the ranks, each sign is + or - with probability 1/2 under the null hypothesis, so W+ is a sum of independent
terms and the number of sign patterns with each sum follows from a convolution over the ranks (Hollander and Wolfe
1973, section 3.1). Midranks are multiples of 1/2; doubled they are whole numbers.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# 2^1000 patterns still are a float, so every count keeps its relative precision, and one pair takes half a second.
EXACT_UP_TO = 1000


def two_sided_p(ranks: Ints, smaller: Ints) -> Floats:
    """Return p = 2 P(W <= min(W+, W-)), at most 1, for each row of doubled ranks [P, n]; 0 marks a dropped task.

    `smaller` [P] is the doubled min(W+, W-) over the ranks given. See `lower_tail`.
    """
    return np.minimum(1.0, 2.0 * lower_tail(ranks, smaller))


def lower_tail(ranks: Ints, at: Ints) -> Floats:
    """Return P(2 W <= at) [P] under the null for each row of doubled ranks [P, n]; 0 marks a dropped task.

    Rows of up to `EXACT_UP_TO` tasks are exact, each distinct pattern of ranks worked out once; longer ones have the
    normal curve with the mean and the variance given the ranks, so with ties, and the continuity correction. Its tails
    are a little too heavy: at n = 1000 a two-sided p is .06 % too large at .05 and 3 % at .0001.
    """
    if ranks.shape[1] > EXACT_UP_TO:
        return _normal_tail(ranks, at)
    total = ranks.sum(axis=1)
    above = 2 * at > total  # W is symmetric about half the sum of the ranks
    place = np.where(above, total - at - 1, at)
    patterns = np.sort(ranks, axis=1)
    p = np.zeros(len(ranks))
    for k in np.lexsort(patterns.T):  # like patterns follow each other, so the memory need not hold them all
        if place[k] >= 0:
            pattern = patterns[k][patterns[k] > 0]
            p[k] = null_lower_tail(tuple(pattern.tolist()))[place[k]]
    return np.where(above, 1.0 - p, p)


@lru_cache(maxsize=64)
def null_lower_tail(doubled: tuple[int, ...]) -> Floats:
    """Return P(2 W+ <= w) for w = 0 .. half of the largest, under the null, for these doubled midranks.

    The sign patterns are counted, and divided by 2^n at the end: up to 53 tasks every digit is exact.
    """
    half = sum(doubled) // 2
    counts = np.zeros(half + 1)
    counts[0] = 1.0
    reached = 0  # the largest sum so far; what lies above it is zero
    for rank in sorted(doubled):
        reached = min(half, reached + rank)
        if rank <= half:  # a larger one cannot belong to the lower half
            counts[rank : reached + 1] += counts[: reached + 1 - rank].copy()
    return np.ldexp(np.cumsum(counts), -len(doubled))


def _normal_tail(ranks: Ints, at: Ints) -> Floats:
    """Return the normal approximation of P(2 W <= at); half a step of 2 W, 2 where all ranks are whole, else 1."""
    from scipy.special import ndtr

    half_step = np.where((ranks % 2 == 0).all(axis=1), 1.0, 0.5)
    spread = np.sqrt((ranks.astype(np.float64) ** 2).sum(axis=1)) / 2
    away = at - ranks.sum(axis=1) / 2 + half_step
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0, ndtr(away / spread), 1.0)


def largest_within(n: int, level: float) -> tuple[int, float]:
    """Return the largest k with P(W <= k) <= level for n ranks without ties, -1 where there is none, and that P.

    Up to `EXACT_UP_TO` exact, beyond it by the normal curve of `lower_tail`.
    """
    from scipy.special import ndtri

    allowed = level * (1 + 1e-9)
    if n <= EXACT_UP_TO:
        tail = null_lower_tail(tuple(range(2, 2 * n + 2, 2)))[::2]  # doubled ranks: every second value is a sum
        k = int(np.searchsorted(tail, allowed, side="right")) - 1
        return k, float(tail[k]) if k >= 0 else 0.0
    ranks = np.arange(2, 2 * n + 2, 2)[None]
    spread = np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    k = int(np.floor(n * (n + 1) / 4 + float(ndtri(min(allowed, 0.5))) * spread - 0.5))
    return k, float(_normal_tail(ranks, np.array([2 * k]))[0])
