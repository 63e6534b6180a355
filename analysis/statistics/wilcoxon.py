"""The two-sided Wilcoxon signed-rank test, exact also with ties and zeros, for many pairs at once.

The null distribution is the permutation distribution conditional on the sizes of the differences, so on their ties and
zeros (signed_rank_null.py). scipy's `method="exact"` gives the same p where there are no ties and no zeros.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.signed_rank_null import EXACT_UP_TO, lower_tail, null_lower_tail, two_sided_p

__all__ = ["EXACT_UP_TO", "SignedRank", "doubled_midranks", "null_lower_tail", "p_above_zero", "signed_rank"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VALUES_AT_ONCE = 1_000_000


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
    """Test each row of `differences` [P, n] (score differences of P pairs over n tasks).

    `zeros`: "wilcox" drops differences of zero before ranking (Wilcoxon 1945); "pratt" ranks them and then drops them
    (Pratt 1959); "zsplit" ranks them and gives half of their ranks to W+ and half to W-. A zero has no sign to flip:
    under zsplit its ranks are a constant half on both sides, so p is Pratt's, and only W and its effect size differ.
    Differences are rounded to `decimals` first: 0.3 - 0.1 and 0.2 must tie, and float noise is no rank.
    """
    d: Floats = np.asarray(np.round(differences, decimals), dtype=np.float64)
    ranks, n_zero = _ranks(d, zeros)
    # The zeros of a row share the midrank (z + 1) / 2 and sum to z (z + 1) / 2; doubled and halved that is the same.
    shared = n_zero * (n_zero + 1) // 2 if zeros == "zsplit" else np.zeros_like(n_zero)
    plus = (ranks * (d > 0)).sum(axis=1)
    minus = ranks.sum(axis=1) - plus
    p = two_sided_p(ranks, np.minimum(plus, minus))
    n_pairs = np.full(len(d), d.shape[1])
    p_min = np.minimum(1.0, 2.0 ** (1.0 - (n_pairs - n_zero)))
    plus, minus = plus + shared, minus + shared
    with np.errstate(invalid="ignore"):
        biserial = np.where(plus + minus > 0, (plus - minus) / (plus + minus), 0.0)
    return SignedRank(n_pairs, n_zero, plus / 2, minus / 2, biserial, p, p_min)


def p_above_zero(differences: Floats, zeros: str = "wilcox", decimals: int = 12) -> Floats:
    """Return the one-sided p [P] of the same test of each row of `differences` [P, n]: is the centre above zero?"""
    d: Floats = np.asarray(np.round(differences, decimals), dtype=np.float64)
    ranks, _ = _ranks(d, zeros)
    return lower_tail(ranks, (ranks * (d < 0)).sum(axis=1))


def _ranks(d: Floats, zeros: str) -> tuple[Ints, Ints]:
    """Return the doubled midranks [P, n] of the sizes of rounded differences, 0 for a zero, and the number of zeros."""
    ranks = doubled_midranks(np.abs(d))
    n_zero = (d == 0).sum(axis=1)
    if zeros == "wilcox":
        ranks = ranks - 2 * n_zero[:, None]  # zeros hold the lowest ranks, so dropping them lowers all others alike
    ranks[d == 0] = 0
    return ranks, n_zero


def doubled_midranks(values: Floats) -> Ints:
    """Return twice the midrank of each value within its row, [P, n] whole numbers.

    Twice the midrank of x is the first and the last place of its run of equal values, added. Rows are taken in blocks
    to bound the memory.
    """
    count, n = values.shape
    ranks = np.empty((count, n), dtype=np.int64)
    block = max(1, VALUES_AT_ONCE // max(1, n))
    for start in range(0, count, block):
        rows = slice(start, start + block)
        order = np.argsort(values[rows], axis=1, kind="stable")
        ordered = np.take_along_axis(values[rows], order, axis=1)
        places = np.broadcast_to(np.arange(1, n + 1), ordered.shape)
        new = np.ones(ordered.shape, dtype=bool)  # where a run of equal values starts
        new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        ends = np.ones(ordered.shape, dtype=bool)
        ends[:, :-1] = new[:, 1:]
        first = np.maximum.accumulate(np.where(new, places, 0), axis=1)
        last = np.minimum.accumulate(np.where(ends, places, n)[:, ::-1], axis=1)[:, ::-1]
        np.put_along_axis(ranks[rows], order, first + last, axis=1)
    return ranks
