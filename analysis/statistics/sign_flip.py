"""The sign-flip permutation test of differences (is their mean zero, with the task as the unit?), and the bootstrap.

Under the null hypothesis the differences of a task are as likely as their negatives, so the sign of each task's whole
vector is flipped (Winkler et al. 2014, "exchangeable up to sign"; for one difference it is Fisher's test of 1935).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.statistics.arrays import Floats, blocks, length

DRAWS = 9_999
SEED = 0
CELLS = 4_000_000  # numbers in the memory at once
RANDOM_FLIPS = 99_999
EXACT_UP_TO = 17  # tasks: 2^16 patterns are fewer than RANDOM_FLIPS
CHUNK = 8192  # patterns multiplied at once
SIGNS_AT_ONCE = 20_000_000


@dataclass(frozen=True)
class SignFlips:
    """`p` and the smallest p that so many units other than zero allow, numbers or [P]; `flips`: patterns counted."""

    p: Any
    p_min: Any
    flips: int


def sign_flip(vectors: Floats) -> SignFlips:
    """Test [n, k] (k differences of n tasks); the statistic is the length of their sum, so it is two-sided.

    With k orthonormal contrasts of one effect this orders the patterns as the repeated-measures F does, because
    flips do not change the total sum of squares. Tasks whose vector is zero say nothing and are left out. Exact, over
    all 2^n patterns (2^(n-1), as a pattern and its negative are alike), up to 17 tasks, else with 99,999 random
    patterns from a fixed seed and p = (b + 1) / (m + 1) (Phipson and Smyth 2010). Without any difference p is 1.
    """
    vectors = vectors[(vectors != 0).any(axis=1)]
    patterns, flips, exact = sign_patterns(len(vectors), RANDOM_FLIPS)
    noise = 1e-10 * np.sqrt((vectors**2).sum(axis=1)).sum()  # sums that are equal but for rounding must tie
    least = max(0.0, float(np.sqrt((vectors.sum(axis=0) ** 2).sum())) - noise) ** 2
    as_large = sum(int((((signs @ vectors) ** 2).sum(axis=1) >= least).sum()) for signs in patterns)
    return SignFlips(counted_p(as_large, flips, exact), counted_p(int(exact), flips, exact), flips)


def sign_patterns(n: int, draws: int, exact_up_to: int = EXACT_UP_TO) -> tuple[Iterator[Floats], int, bool]:
    """Return patterns of n signs, their number, and whether they are all that there are, else `draws` random ones."""
    exact = n <= exact_up_to
    return (all_signs(n), 2 ** max(0, n - 1), True) if exact else (random_signs(n, draws), draws, False)


def counted_p(as_large: Any, flips: int, exact: bool) -> Any:
    """Return p from the number of patterns as large as the observed one, which random ones do not hold."""
    return as_large / flips if exact else (as_large + 1) / (flips + 1)


def all_signs(n: int) -> Iterator[Floats]:
    """Yield all 2^(n-1) patterns of n signs whose first is +, in chunks [patterns, n]."""
    total = 2 ** max(0, n - 1)
    for block in blocks(total, CHUNK):
        numbers = np.arange(block.start, block.stop)[:, None]
        yield np.asarray(1 - 2 * ((numbers >> np.arange(n)[::-1]) & 1), dtype=np.float64)


def random_signs(n: int, count: int) -> Iterator[Floats]:
    """Yield `count` random patterns of n signs, in chunks [patterns, n]; the same ones at every call."""
    generator = np.random.default_rng(SEED)
    for block in blocks(count, min(CHUNK, SIGNS_AT_ONCE // n)):
        bits = generator.integers(0, 2, (length(block), n), dtype=np.int8)
        yield np.asarray(1 - 2 * bits, dtype=np.float64)


def flip_means(differences: Floats) -> SignFlips:
    """Test each row of `differences` [P, n units]: is its mean zero? Two-sided; units are exchangeable up to sign.

    Exact over all patterns up to 17 units, else over DRAWS random ones from a fixed seed with p = (b + 1) / (m + 1).
    A row's zeros change no sum, so they change no p. `sign_flip` is the same test for one vector.
    """
    sums = np.abs(differences.sum(axis=1))
    p_min = np.minimum(1.0, 2.0 ** (1.0 - (differences != 0).sum(axis=1)))
    patterns, flips, exact = sign_patterns(differences.shape[1], DRAWS)
    least = sums - 1e-10 * np.abs(differences).sum(axis=1)  # sums that are equal but for rounding must tie
    as_large = np.zeros(len(differences), dtype=np.int64)
    for signs in patterns:
        for block in blocks(len(signs), CELLS // max(1, len(differences))):
            as_large += (np.abs(signs[block] @ differences.T) >= least).sum(axis=0)
    least_p = np.maximum(p_min, counted_p(int(exact), flips, exact))
    return SignFlips(counted_p(as_large, flips, exact), least_p, flips)


def bootstrap_counts(n: int) -> Iterator[Floats]:
    """Yield chunks [draws, n], DRAWS in all, of how often each of n units is drawn with replacement (Efron 1979); the
    same ones at every call."""
    generator = np.random.default_rng(SEED)
    for block in blocks(DRAWS, CELLS // n):
        rows = length(block)
        drawn = generator.integers(0, n, (rows, n)) + np.arange(rows)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def percentile_interval(values: Floats, level: float) -> Floats:
    """Return [..., 2]: the middle `level` of the last axis of `values` (the percentile interval of the bootstrap)."""
    ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=-1)
    return np.moveaxis(ends, 0, -1)
