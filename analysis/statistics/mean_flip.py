"""The paired permutation test of the mean difference, for many pairs at once."""

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.sign_flip import EXACT_UP_TO, RANDOM_FLIPS, all_signs, random_signs

Floats = NDArray[np.float64]

PAIRS_AT_ONCE = 400


def mean_flip(differences: Floats) -> tuple[Floats, bool]:
    """Return the two-sided p [P] of each row of `differences` [P, n], and whether all sign patterns were counted.

    Under the null hypothesis each task's difference is as likely as its negative (Fisher 1935; Pitman 1937). p is the
    share of sign patterns whose mean lies at least as far from zero: of all of them up to 17 tasks, else of 99,999
    random ones from a fixed seed, the observed one counted in. `sign_flip` gives the same p for one pair.
    """
    n = differences.shape[1]
    exact = n <= EXACT_UP_TO
    noise = 1e-10 * np.abs(differences).sum(axis=1)  # sums that are equal but for rounding must tie
    least = np.abs(differences.sum(axis=1)) - noise
    far = np.zeros(len(differences))
    for signs in all_signs(n) if exact else random_signs(n, RANDOM_FLIPS):
        for start in range(0, len(differences), PAIRS_AT_ONCE):
            rows = slice(start, start + PAIRS_AT_ONCE)
            far[rows] += (np.abs(signs @ differences[rows].T) >= least[rows]).sum(axis=0)
    return (far / 2 ** (n - 1), True) if exact else ((far + 1) / (RANDOM_FLIPS + 1), False)
