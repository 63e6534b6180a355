"""The sign-flip permutation test of a vector of differences: is its mean zero, with the task as the unit?

Under the null hypothesis the differences of a task are as likely as their negatives, so the sign of each task's whole
vector is flipped (Winkler et al. 2014, "exchangeable up to sign"; for one difference it is Fisher's test of 1935).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RANDOM_FLIPS = 99_999
SEED = 0
EXACT_UP_TO = 17  # tasks: 2^16 patterns are fewer than RANDOM_FLIPS
CHUNK = 8192  # patterns multiplied at once
SIGNS = 200_000_000  # drawn at most, but for the fewest patterns
FEWEST_FLIPS = 999
SIGNS_AT_ONCE = 20_000_000


@dataclass(frozen=True)
class SignFlip:
    """`flips`: patterns counted; `p_min`: the smallest p that any vectors of so many tasks can reach."""

    p: float
    p_min: float
    flips: int
    exact: bool


def sign_flip(vectors: Floats) -> SignFlip:
    """Test [n, k] (k differences of n tasks); the statistic is the length of their sum, so it is two-sided.

    With k orthonormal contrasts of one effect this orders the patterns as the repeated-measures F does, because
    flips do not change the total sum of squares. Tasks whose vector is zero say nothing and are left out. Exact, over
    all 2^n patterns (2^(n-1), as a pattern and its negative are alike), up to 17 tasks, else with 99,999 random
    patterns from a fixed seed and p = (b + 1) / (m + 1) (Phipson and Smyth 2010); beyond 2,000 tasks with fewer
    patterns, so that no more than 200 million signs are drawn, but 999 at least. Without any difference p is 1.
    """
    vectors = vectors[(vectors != 0).any(axis=1)]
    n = len(vectors)
    exact = n <= EXACT_UP_TO
    flips = 2 ** max(0, n - 1) if exact else flips_drawn(n)
    noise = 1e-10 * np.sqrt((vectors**2).sum(axis=1)).sum()  # sums that are equal but for rounding must tie
    least = max(0.0, float(np.sqrt((vectors.sum(axis=0) ** 2).sum())) - noise) ** 2
    patterns = all_signs(n) if exact else random_signs(n, flips)
    as_large = sum(int((((signs @ vectors) ** 2).sum(axis=1) >= least).sum()) for signs in patterns)
    if exact:  # the observed pattern is among them
        return SignFlip(as_large / flips, 1 / flips, flips, True)
    return SignFlip((as_large + 1) / (flips + 1), 1 / (flips + 1), flips, False)


def flips_drawn(n: int) -> int:
    """Return how many random patterns of n signs are drawn."""
    return max(FEWEST_FLIPS, min(RANDOM_FLIPS, SIGNS // n))


def all_signs(n: int) -> Iterator[Floats]:
    """Yield all 2^(n-1) patterns of n signs whose first is +, in chunks [patterns, n]."""
    total = 2 ** max(0, n - 1)
    for start in range(0, total, CHUNK):
        numbers = np.arange(start, min(total, start + CHUNK))[:, None]
        yield np.asarray(1 - 2 * ((numbers >> np.arange(n)[::-1]) & 1), dtype=np.float64)


def random_signs(n: int, count: int) -> Iterator[Floats]:
    """Yield `count` random patterns of n signs, in chunks [patterns, n]; the same ones at every call."""
    generator = np.random.default_rng(SEED)
    chunk = min(CHUNK, max(1, SIGNS_AT_ONCE // n))
    for start in range(0, count, chunk):
        size = (min(chunk, count - start), n)
        yield np.asarray(1 - 2 * generator.integers(0, 2, size, dtype=np.int8), dtype=np.float64)
