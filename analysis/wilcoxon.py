"""The two-sided exact Wilcoxon signed-rank test, exact also with ties and zeros, for many pairs at once.

Given the ranks, each sign is + or - with probability 1/2 under the null hypothesis, so W+ is a sum of independent
terms and its distribution follows from a convolution over the ranks (Hollander and Wolfe 1973, section 3.1). Midranks
are multiples of 1/2; doubled they are whole numbers. This is the permutation distribution conditional on the ties,
for every n, with no approximation. scipy's `method="exact"` gives the same p where there are no ties and no zeros.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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

    `zeros`: "wilcox" drops differences of zero before ranking (Wilcoxon 1945), "pratt" ranks them and then drops them
    (Pratt 1959). Differences are rounded to `decimals` first: 0.3 - 0.1 and 0.2 must tie, and float noise is no rank.
    """
    d = np.round(np.asarray(differences, dtype=np.float64), decimals)
    ranks = doubled_midranks(np.abs(d))
    n_zero = (d == 0).sum(axis=1)
    if zeros == "wilcox":
        ranks = ranks - 2 * n_zero[:, None]  # zeros hold the lowest ranks, so dropping them lowers all others alike
    ranks[d == 0] = 0
    plus = (ranks * (d > 0)).sum(axis=1)
    total = ranks.sum(axis=1)
    minus = total - plus
    with np.errstate(invalid="ignore"):
        biserial = np.where(total > 0, (plus - minus) / total, 0.0)
    n_pairs = np.full(len(d), d.shape[1])
    p_min = np.minimum(1.0, 2.0 ** (1.0 - (n_pairs - n_zero)))
    return SignedRank(n_pairs, n_zero, plus / 2, minus / 2, biserial, _p_values(ranks, np.minimum(plus, minus)), p_min)


def doubled_midranks(values: Floats) -> Ints:
    """Return twice the midrank of each value within its row, [P, n] whole numbers.

    Twice the midrank of x is #(values < x) + #(values <= x) + 1. Rows are taken in blocks to bound the memory.
    """
    count, n = values.shape
    ranks = np.empty((count, n), dtype=np.int64)
    block = max(1, 4_000_000 // max(1, n * n))
    for start in range(0, count, block):
        v = values[start : start + block]
        below = (v[:, None, :] < v[:, :, None]).sum(axis=2)
        up_to = (v[:, None, :] <= v[:, :, None]).sum(axis=2)
        ranks[start : start + block] = below + up_to + 1
    return ranks


def _p_values(ranks: Ints, smaller: Ints) -> Floats:
    """Two-sided p = 2 P(W <= min(W+, W-)), at most 1, by the symmetry of W; each rank pattern is worked out once."""
    patterns = np.sort(ranks, axis=1)
    order = np.lexsort(patterns.T)
    p = np.empty(len(ranks))
    for k in order:
        tail = null_lower_tail(tuple(patterns[k][patterns[k] > 0].tolist()))
        p[k] = min(1.0, 2.0 * tail[smaller[k]])
    return p


@lru_cache(maxsize=4096)
def null_lower_tail(doubled: tuple[int, ...]) -> Floats:
    """Return P(2 W+ <= w) for w = 0 .. half of the largest, under the null, for these doubled midranks."""
    half = sum(doubled) // 2
    density = np.zeros(half + 1)
    density[0] = 1.0
    for rank in doubled:
        density *= 0.5
        if rank <= half:  # a larger one cannot belong to the lower half
            density[rank:] += density[: half + 1 - rank].copy()
    return np.cumsum(density)
