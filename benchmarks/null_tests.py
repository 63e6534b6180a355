"""p-values of many repetitions at once. The signed-rank test is the shipped one; the others are checked against scipy.

Each test is a function of differences [reps, n] that returns p [reps].
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analysis.settings import CHOICES
from analysis.statistics.wilcoxon import signed_rank

Floats = NDArray[np.float64]

ENUMERATED_UP_TO = 11  # tasks: 2^10 patterns
FLIPS = 1999
CHUNK = 1000  # repetitions whose flips are shared


def signed_rank_with(zeros: str) -> Callable[[Floats], Floats]:
    """Return the exact signed-rank test with that handling of zeros, as `analysis` runs it."""
    return lambda differences: signed_rank(differences, zeros, 12).p


def sign_test(differences: Floats) -> Floats:
    """Exact binomial test of the signs; zeros dropped (Dixon and Mood 1946)."""
    from scipy.stats import binom

    plus, minus = (differences > 0).sum(axis=1), (differences < 0).sum(axis=1)
    return np.asarray(np.minimum(1.0, 2 * binom.cdf(np.minimum(plus, minus), plus + minus, 0.5)))


def permutation(differences: Floats) -> Floats:
    """Paired permutation test of the mean (Fisher 1935): all sign patterns up to 11 tasks, else 1,999 random ones."""
    reps, n = differences.shape
    exact, p = n <= ENUMERATED_UP_TO, np.empty(reps)
    rng = np.random.default_rng(0)
    signs = 1.0 - 2.0 * ((np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1) if exact else None
    for start in range(0, reps, CHUNK):
        d = differences[start : start + CHUNK]
        patterns = signs if signs is not None else rng.choice([-1.0, 1.0], size=(FLIPS, n))
        least = np.abs(d.sum(axis=1)) - 1e-10 * np.abs(d).sum(axis=1)  # sums equal but for rounding must tie
        as_large = (np.abs(d @ patterns.T) >= least[:, None]).sum(axis=1)
        p[start : start + CHUNK] = as_large / len(patterns) if exact else (as_large + 1) / (FLIPS + 1)
    return p


def t_test(differences: Floats) -> Floats:
    """Paired t test; p = 1 where all differences are zero."""
    from scipy.special import stdtr

    n = differences.shape[1]
    error = differences.std(axis=1, ddof=1) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(differences.mean(axis=1)) / error
    return np.asarray(2 * stdtr(n - 1, -np.nan_to_num(t, nan=0.0, posinf=np.inf)))


def all_tests() -> dict[str, Callable[[Floats], Floats]]:
    """Return the tests by name; the handlings of zeros are those that the analysis offers."""
    signed = {f"signed-rank, {zeros}": signed_rank_with(zeros) for zeros in CHOICES["zeros"]}
    return {**signed, "sign test": sign_test, "permutation of the mean": permutation, "paired t": t_test}
