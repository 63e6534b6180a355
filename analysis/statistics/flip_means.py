"""The paired permutation test of the mean difference, for many pairs at once, with the same sign flips for all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.resample import DRAWS
from analysis.statistics.sign_flip import EXACT_UP_TO, all_signs, random_signs

Floats = NDArray[np.float64]

CELLS = 4_000_000  # sums held at once
DRAWN_UP_TO = 1000  # units: beyond them the normal curve


@dataclass(frozen=True)
class FlipMeans:
    """`p` and `p_min` (the smallest that so many units other than zero allow) [P]; `flips`: patterns counted.

    `flips` is 0 where p is that of the normal curve.
    """

    p: Floats
    p_min: Floats
    flips: int
    exact: bool


def flip_means(differences: Floats, draws: int = DRAWS) -> FlipMeans:
    """Test each row of `differences` [P, n units]: is its mean zero? Two-sided; units are exchangeable up to sign.

    Under the null hypothesis each unit's difference is as likely as its negative (Fisher 1935; Pitman 1937). Exact over
    all patterns up to 17 units, else over `draws` random ones from a fixed seed with p = (b + 1) / (m + 1) (Phipson
    and Smyth 2010). A row's zeros change no sum, so they change no p. `sign_flip` is the same test for one vector.
    Beyond 1,000 units no signs are drawn: given the sizes, the sum of n independent signs has the variance sum d^2, and
    p is that of the normal curve, off by about (sum d^4) / (sum d^2)^2 / 4 at .05.
    """
    n = differences.shape[1]
    if n > DRAWN_UP_TO:
        return _normal(differences)
    exact = n <= EXACT_UP_TO
    flips = 2 ** (n - 1) if exact else draws
    noise = 1e-10 * np.abs(differences).sum(axis=1)  # sums that are equal but for rounding must tie
    least = np.abs(differences.sum(axis=1)) - noise
    as_large = np.zeros(len(differences), dtype=np.int64)
    rows = max(1, CELLS // max(1, len(differences)))
    for signs in _few(all_signs(n) if exact else random_signs(n, draws), rows):
        as_large += (np.abs(signs @ differences.T) >= least).sum(axis=0)
    other = (differences != 0).sum(axis=1)
    p_min = np.minimum(1.0, 2.0 ** (1.0 - other))
    if exact:
        return FlipMeans(as_large / flips, p_min, flips, True)
    return FlipMeans((as_large + 1) / (flips + 1), np.maximum(p_min, 1 / (flips + 1)), flips, False)


def _normal(differences: Floats) -> FlipMeans:
    from scipy.special import ndtr

    spread = np.sqrt((differences**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(spread > 0, 2 * ndtr(-np.abs(differences.sum(axis=1)) / spread), 1.0)
    return FlipMeans(p, np.minimum(1.0, 2.0 ** (1.0 - (differences != 0).sum(axis=1))), 0, False)


def _few(chunks: Iterator[Floats], rows: int) -> Iterator[Floats]:
    """Cut chunks into at most `rows` rows, so that the sums of many pairs fit into the memory."""
    for chunk in chunks:
        for start in range(0, len(chunk), rows):
            yield chunk[start : start + rows]
