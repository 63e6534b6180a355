"""The two-sided Wilcoxon signed-rank test, exact also with ties and zeros, for many pairs at once.

The null distribution is the permutation distribution conditional on the sizes of the differences, so on their ties and
zeros. scipy's `method="exact"` gives the same p where there are no ties and no zeros.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from analysis.statistics.arrays import Floats, Ints, rounded

# 2^1000 patterns still are a float, so every count keeps its relative precision, and one pair takes half a second.
EXACT_UP_TO = 1000


@dataclass(frozen=True)
class SignedRank:
    """Results for P pairs, each field an array of length P.

    `n_pairs` counts all tasks, `n_zero` the differences of zero among them; `p_min` is the smallest two-sided p that
    any data with so many differences other than zero can reach, 2 / 2^(n_pairs - n_zero), at most 1.
    `rank_biserial` is the matched-pairs (W+ - W-) / (W+ + W-) of Kerby 2014, 0 where all differences are zero.
    """

    n_pairs: Ints
    n_zero: Ints
    w_plus: Floats
    w_minus: Floats
    rank_biserial: Floats
    p: Floats
    p_min: Floats


def signed_rank(differences: Floats, zeros: str = "wilcox", decimals: int = 12) -> SignedRank:
    """Test each row of `differences` [P, n] (score differences of P pairs over n tasks), rounded to `decimals` first.

    `zeros`: "wilcox" drops differences of zero before ranking (Wilcoxon 1945); "pratt" ranks them and then drops them
    (Pratt 1959); "zsplit" ranks them and gives half of their ranks to W+ and half to W-. A zero has no sign to flip:
    under zsplit its ranks are a constant half on both sides, so p is Pratt's, and only W and its effect size differ.
    """
    d = rounded(differences, decimals)
    ranks, n_zero = _ranks(d, zeros)
    # The zeros of a row share the midrank (z + 1) / 2 and sum to z (z + 1) / 2; doubled and halved that is the same.
    shared = n_zero * (n_zero + 1) // 2 if zeros == "zsplit" else np.zeros_like(n_zero)
    plus = (ranks * (d > 0)).sum(axis=1)
    minus = ranks.sum(axis=1) - plus
    p = np.minimum(1.0, 2.0 * lower_tail(ranks, np.minimum(plus, minus)))  # 2 P(W <= min(W+, W-))
    n_pairs = np.full(len(d), d.shape[1])
    p_min = np.minimum(1.0, 2.0 ** (1.0 - (n_pairs - n_zero)))
    plus, minus = plus + shared, minus + shared
    with np.errstate(invalid="ignore"):
        biserial = np.where(plus + minus > 0, (plus - minus) / (plus + minus), 0.0)
    return SignedRank(n_pairs, n_zero, plus / 2, minus / 2, biserial, p, p_min)


def p_above_zero(differences: Floats, zeros: str = "wilcox", decimals: int = 12) -> Floats:
    """Return the one-sided p [P] of the same test of each row of `differences` [P, n]: is the centre above zero?"""
    d = rounded(differences, decimals)
    ranks, _ = _ranks(d, zeros)
    return lower_tail(ranks, (ranks * (d < 0)).sum(axis=1))


def _ranks(d: Floats, zeros: str) -> tuple[Ints, Ints]:
    """Return the doubled midranks [P, n] of the sizes of rounded differences, 0 for a zero, and the number of zeros."""
    ranks = np.rint(2 * rankdata(np.abs(d), axis=1)).astype(np.int64)
    n_zero = (d == 0).sum(axis=1)
    if zeros == "wilcox":
        ranks -= 2 * n_zero[:, None]  # zeros hold the lowest ranks, so dropping them lowers all others alike
    ranks[d == 0] = 0
    return ranks, n_zero


def lower_tail(ranks: Ints, at: Ints) -> Floats:
    """Return P(2 W <= at) [P] under the null for each row of doubled ranks [P, n]; 0 marks a dropped task.

    Rows of up to `EXACT_UP_TO` tasks are exact; longer ones have the normal curve with the mean and the variance given
    the ranks, so with ties, and the continuity correction.
    """
    if ranks.shape[1] > EXACT_UP_TO:
        return _normal_tail(ranks, at)
    total = ranks.sum(axis=1)
    above = 2 * at > total  # W is symmetric about half the sum of the ranks
    place = np.where(above, total - at - 1, at)
    p, patterns = np.zeros(len(ranks)), np.sort(ranks, axis=1)
    for row in np.flatnonzero(place >= 0).tolist():
        p[row] = null_lower_tail(tuple(patterns[row, (patterns[row] == 0).sum() :].tolist()))[place[row]]
    return np.where(above, 1.0 - p, p)


@lru_cache(maxsize=64)
def null_lower_tail(doubled: tuple[int, ...]) -> Floats:
    """Return P(2 W+ <= w) for w = 0 .. half of the largest, under the null, for these doubled midranks, ascending.

    The sign patterns are counted, and divided by 2^n at the end: up to 53 tasks every digit is exact.
    """
    counts = np.zeros(sum(doubled) // 2 + 1)
    counts[0] = 1.0
    for rank in doubled:
        counts[rank:] += counts[: max(0, len(counts) - rank)].copy()
    return np.ldexp(np.cumsum(counts), -len(doubled))


def _normal_tail(ranks: Ints, at: Ints) -> Floats:
    """Return the normal approximation of P(2 W <= at); half a step of 2 W, 2 where all ranks are whole, else 1."""
    half_step = np.where((ranks % 2 == 0).all(axis=1), 1.0, 0.5)
    spread = np.sqrt((ranks.astype(np.float64) ** 2).sum(axis=1)) / 2
    away = at - ranks.sum(axis=1) / 2 + half_step
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0, ndtr(away / spread), 1.0)


def largest_within(n: int, level: float) -> tuple[int, float]:
    """Return the largest k with P(W <= k) <= level for n ranks without ties, -1 where there is none, and that P."""
    allowed = level * (1 + 1e-9)
    if n <= EXACT_UP_TO:
        tail = null_lower_tail(tuple(range(2, 2 * n + 2, 2)))[::2]  # doubled ranks: every second value is a sum
        k = int(np.searchsorted(tail, allowed, side="right")) - 1
        return k, float(tail[k]) if k >= 0 else 0.0
    k = int(largest_by_normal_curve(n, min(allowed, 0.5)))
    return k, float(_normal_tail(np.arange(2, 2 * n + 2, 2)[None], np.array([2 * k]))[0])


def largest_by_normal_curve(n: Any, level: float) -> Any:
    """Return the largest k with P(W <= k) <= level for n ranks without ties (a number or an array), as floats."""
    spread = np.sqrt(n * (n + 1.0) * (2.0 * n + 1) / 24)
    return np.floor(n * (n + 1.0) / 4 + float(ndtri(level)) * spread - 0.5)
