"""Other paired tests than the signed-rank test of a pair, and the interval of its mean."""

from typing import Any

import numpy as np
from scipy import stats

from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.intervals import student_interval
from analysis.statistics.sign_flip import RANDOM_FLIPS, flip_means

RESAMPLED_PAIRS = 300  # all pairs of 24 designs take seconds; with more, no signs are flipped


def cross_checks(differences: Floats, decimals: int = 12, level: float = 0.95) -> dict[str, Any]:
    """Return column -> values [P] for `differences` [P, n] (P pairs over n tasks), rounded to `decimals`.

    `mean_low`, `mean_high` (Student's interval of the mean, level asked for); `p_permutation` (of the mean),
    `permutation_exact`; `p_sign`; `p_t`. With more than 300 pairs `p_permutation` is nan.
    """
    d = rounded(differences, decimals) + 0.0  # -0. is 0.
    low, high = student_interval(d, level)
    flipped = flip_means(d, RANDOM_FLIPS) if len(d) <= RESAMPLED_PAIRS else None
    return {
        "mean_low": low,
        "mean_high": high,
        "p_permutation": flipped.p if flipped else np.full(len(d), np.nan),
        "permutation_exact": bool(flipped and flipped.exact),
        "p_sign": sign_test(d),
        "p_t": paired_t(d),
    }


def sign_test(differences: Floats) -> Floats:
    """Return the exact two-sided p [P] of the sign test; differences of zero are dropped (Dixon and Mood 1946).

    Twice the lower tail of the binomial, at most 1: scipy's `binomtest` at one half, for all rows at once.
    """
    plus, minus = (differences > 0).sum(axis=1), (differences < 0).sum(axis=1)
    counts, place = np.unique(np.stack([np.minimum(plus, minus), plus + minus]), axis=1, return_inverse=True)
    return np.minimum(1.0, 2.0 * stats.binom.cdf(*counts, 0.5))[place]


def paired_t(differences: Floats) -> Floats:
    """Return the two-sided p [P] of the paired t test; nan where there is one task or the differences do not vary."""
    p = np.full(len(differences), np.nan)
    varies = np.ptp(differences, axis=1) > 0
    if varies.any():
        p[varies] = stats.ttest_1samp(differences[varies], 0.0, axis=1).pvalue
    return p
