"""The null distribution of the signed-rank sum given the ranks: by convolution, beyond a stated n by random signs.

Given the ranks, each sign is + or - with probability 1/2 under the null hypothesis, so W+ is a sum of independent
terms and the number of sign patterns with each sum follows from a convolution over the ranks (Hollander and Wolfe
1973, section 3.1). Midranks are multiples of 1/2; doubled they are whole numbers.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.sign_flip import RANDOM_FLIPS, random_signs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# 2^1000 patterns still are a float, so every count keeps its relative precision, and one pair takes half a second.
EXACT_UP_TO = 1000
PAIRS_AT_ONCE = 500


def two_sided_p(ranks: Ints, smaller: Ints) -> Floats:
    """Return p = 2 P(W <= min(W+, W-)), at most 1, for each row of doubled ranks [P, n]; 0 marks a dropped task.

    `smaller` [P] is the doubled min(W+, W-) over the ranks given. W is symmetric about half the sum of the ranks.
    Rows of up to `EXACT_UP_TO` tasks are exact, each distinct pattern of ranks worked out once; longer ones are
    estimated with 99,999 random sign patterns from a fixed seed, p = (b + 1) / (m + 1) (Phipson and Smyth 2010).
    """
    if ranks.shape[1] > EXACT_UP_TO:
        return _estimated(ranks, smaller)
    patterns = np.sort(ranks, axis=1)
    p = np.empty(len(ranks))
    for k in np.lexsort(patterns.T):  # like patterns follow each other, so the memory need not hold them all
        pattern = patterns[k][patterns[k] > 0]
        p[k] = min(1.0, 2.0 * null_lower_tail(tuple(pattern.tolist()))[smaller[k]])
    return p


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


def _estimated(ranks: Ints, smaller: Ints) -> Floats:
    """Share of random patterns at least as far from the middle, the observed one counted in."""
    far = np.zeros(len(ranks))
    distance = ranks.sum(axis=1) - 2 * smaller  # |W+ - W-|, doubled
    for signs in random_signs(ranks.shape[1], RANDOM_FLIPS):
        for start in range(0, len(ranks), PAIRS_AT_ONCE):
            rows = slice(start, start + PAIRS_AT_ONCE)
            far[rows] += (np.abs(signs @ ranks[rows].T.astype(np.float64)) >= distance[rows]).sum(axis=0)
    return (far + 1) / (RANDOM_FLIPS + 1)
