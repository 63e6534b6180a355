"""The two-sided Wilcoxon signed-rank test, exact also with ties and zeros, for many pairs at once.

The null distribution is the permutation distribution conditional on the sizes of the differences, so on their ties and
zeros. scipy's `method="exact"` gives the same p where there are no ties and no zeros.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import rankdata

from analysis.statistics.arrays import Floats, Ints, rounded


@dataclass(frozen=True)
class SignedRank:
    """Results for P pairs, each field an array of length P.

    `n_zero` counts the differences of zero among the n tasks; `p_min` is the smallest two-sided p that any data with so
    many differences other than zero can reach, 2 / 2^(n - n_zero), at most 1.
    `rank_biserial` is the matched-pairs (W+ - W-) / (W+ + W-) of Kerby 2014, 0 where all differences are zero.
    """

    n_zero: Ints
    w_plus: Floats
    w_minus: Floats
    rank_biserial: Floats
    p: Floats
    p_min: Floats


def signed_rank(differences: Floats) -> SignedRank:
    """Test each row of `differences` [P, n] (score differences of P pairs over n tasks), rounded first.

    Differences of zero are dropped before ranking (Wilcoxon 1945).
    """
    d = rounded(differences)
    ranks = np.rint(2 * rankdata(np.abs(d), axis=1)).astype(np.int64)  # doubled midranks are whole
    n_zero = (d == 0).sum(axis=1)
    ranks -= 2 * n_zero[:, None]  # zeros hold the lowest ranks, so dropping them lowers all others alike
    ranks[d == 0] = 0
    plus = (ranks * (d > 0)).sum(axis=1)
    minus = ranks.sum(axis=1) - plus
    p = np.minimum(1.0, 2.0 * lower_tail(ranks, np.minimum(plus, minus)))  # 2 P(W <= min(W+, W-))
    p_min = np.minimum(1.0, 2.0 ** (1.0 - (d.shape[1] - n_zero)))
    with np.errstate(invalid="ignore"):
        biserial = np.where(plus + minus > 0, (plus - minus) / (plus + minus), 0.0)
    return SignedRank(n_zero, plus / 2, minus / 2, biserial, p, p_min)


def lower_tail(ranks: Ints, at: Ints) -> Floats:
    """Return P(2 W <= at) [P], exact, under the null for each row of doubled ranks [P, n]; 0 marks a dropped task.

    at: half the sum of the ranks at most.
    """
    p, patterns = np.zeros(len(ranks)), np.sort(ranks, axis=1)
    for row, place in enumerate(at.tolist()):
        p[row] = null_lower_tail(tuple(patterns[row, (patterns[row] == 0).sum() :].tolist()))[place]
    return p


@lru_cache(maxsize=64)
def null_lower_tail(doubled: tuple[int, ...]) -> Floats:
    """Return P(2 W+ <= w) for w = 0 .. half of the largest, under the null, for these doubled midranks, ascending.

    Half of the sign patterns hold each rank: up to 53 tasks every digit is exact.
    """
    chances = np.zeros(sum(doubled) // 2 + 1)
    chances[0] = 1.0
    for rank in doubled:
        chances *= 0.5
        chances[rank:] += chances[: max(0, len(chances) - rank)].copy()
    return np.cumsum(chances)


def largest_within(n: int, level: float) -> int:
    """Return the largest k with P(W <= k) <= level for n ranks without ties; -1 where there is none."""
    tail = null_lower_tail(tuple(range(2, 2 * n + 2, 2)))[::2]  # doubled ranks: every second value is a sum
    return int(np.searchsorted(tail, level * (1 + 1e-9), side="right")) - 1
