"""The two-sided Wilcoxon signed-rank test, exact also with ties and zeros, for many pairs at once.

The null distribution is the permutation distribution conditional on the sizes of the differences, so on their ties and
zeros. scipy's `method="exact"` gives the same p where there are no ties and no zeros.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from analysis.statistics.arrays import Floats, Ints, blocks, length, rounded

# 2^1000 patterns still are a float, so every count keeps its relative precision, and one pair takes half a second.
EXACT_UP_TO = 1000
VALUES_AT_ONCE = 1_000_000
# With so many tasks the normal curve's p is .77 times the exact one or more, and 1.32 times or less where that is above
# .006: the extremes of 150 patterns of ties and zeros, and of no ties, down to p of 1e-8.
MANY_TASKS, DOUBT, LARGE = 100, 1.5, 0.01


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


def signed_rank(
    differences: Floats, zeros: str = "wilcox", decimals: int = 12, near: float | None = None
) -> SignedRank:
    """Test each row of `differences` [P, n] (score differences of P pairs over n tasks), rounded to `decimals` first.

    `zeros`: "wilcox" drops differences of zero before ranking (Wilcoxon 1945); "pratt" ranks them and then drops them
    (Pratt 1959); "zsplit" ranks them and gives half of their ranks to W+ and half to W-. A zero has no sign to flip:
    under zsplit its ranks are a constant half on both sides, so p is Pratt's, and only W and its effect size differ.
    near: for whoever asks only whether p is at most this, see `lower_tail`.
    """
    d = rounded(differences, decimals)
    ranks, n_zero = _ranks(d, zeros)
    # The zeros of a row share the midrank (z + 1) / 2 and sum to z (z + 1) / 2; doubled and halved that is the same.
    shared = n_zero * (n_zero + 1) // 2 if zeros == "zsplit" else np.zeros_like(n_zero)
    plus = (ranks * (d > 0)).sum(axis=1)
    minus = ranks.sum(axis=1) - plus
    band = None if near is None else (near / 2, near / 2)
    p = np.minimum(1.0, 2.0 * lower_tail(ranks, np.minimum(plus, minus), band))  # 2 P(W <= min(W+, W-))
    n_pairs = np.full(len(d), d.shape[1])
    p_min = np.minimum(1.0, 2.0 ** (1.0 - (n_pairs - n_zero)))
    plus, minus = plus + shared, minus + shared
    with np.errstate(invalid="ignore"):
        biserial = np.where(plus + minus > 0, (plus - minus) / (plus + minus), 0.0)
    return SignedRank(n_pairs, n_zero, plus / 2, minus / 2, biserial, p, p_min)


def signed_ranks(differences: Floats, zeros: str = "wilcox", decimals: int = 12) -> Ints:
    """Return the doubled midranks [P, n] that the same test gives the differences, each with the sign of its own."""
    d = rounded(differences, decimals)
    return np.asarray(_ranks(d, zeros)[0] * np.sign(d), dtype=np.int64)


def p_above_zero(
    differences: Floats, zeros: str = "wilcox", decimals: int = 12, near: tuple[float, float] | None = None
) -> Floats:
    """Return the one-sided p [P] of the same test of each row of `differences` [P, n]: is the centre above zero?

    near: see `lower_tail`.
    """
    d = rounded(differences, decimals)
    ranks, _ = _ranks(d, zeros)
    return lower_tail(ranks, (ranks * (d < 0)).sum(axis=1), near)


def _ranks(d: Floats, zeros: str) -> tuple[Ints, Ints]:
    """Return the doubled midranks [P, n] of the sizes of rounded differences, 0 for a zero, and the number of zeros."""
    ranks = doubled_midranks(np.abs(d))
    n_zero = (d == 0).sum(axis=1)
    if zeros == "wilcox":
        ranks -= 2 * n_zero[:, None]  # zeros hold the lowest ranks, so dropping them lowers all others alike
    ranks[d == 0] = 0
    return ranks, n_zero


def doubled_midranks(values: Floats) -> Ints:
    """Return twice the midrank of each value within its row, [P, n]: the first and last place of its ties, added."""
    count, n = values.shape
    ranks = np.empty((count, n), dtype=np.int64)
    for rows in blocks(count, VALUES_AT_ONCE // max(1, n)):
        order = np.argsort(values[rows], axis=1, kind="stable")
        first, last = tie_ends(np.take_along_axis(values[rows], order, axis=1))
        np.put_along_axis(ranks[rows], order, first + last + 2, axis=1)
    return ranks


def tie_ends(ordered: Floats) -> tuple[Ints, Ints]:
    """Return the first and the last place (from 0) of the run of ties at each place of sorted values' last axis."""
    places = np.arange(ordered.shape[-1])
    new, final = np.ones(ordered.shape, dtype=bool), np.ones(ordered.shape, dtype=bool)
    new[..., 1:] = final[..., :-1] = ordered[..., 1:] != ordered[..., :-1]
    first = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    last = np.minimum.accumulate(np.where(final, places, len(places))[..., ::-1], axis=-1)[..., ::-1]
    return first, last


def lower_tail(ranks: Ints, at: Ints, near: tuple[float, float] | None = None) -> Floats:
    """Return P(2 W <= at) [P] under the null for each row of doubled ranks [P, n]; 0 marks a dropped task.

    Rows of up to `EXACT_UP_TO` tasks are exact, each distinct pattern of ranks worked out once; longer ones have the
    normal curve with the mean and the variance given the ranks, so with ties, and the continuity correction. Its tails
    are a little too heavy: at n = 1000 a two-sided p is .06 % too large at .05 and 3 % at .0001.
    near: the least and the largest number that a caller compares p with. With `MANY_TASKS` in a row the normal curve's
    p stands where it is off them by a factor of `DOUBT`: the exact one lies on the same side.
    """
    if ranks.shape[1] > EXACT_UP_TO:
        return _normal_tail(ranks, at)
    if near is not None and near[1] >= LARGE and ranks.shape[1] >= MANY_TASKS:
        p = _normal_tail(ranks, at)
        clear = ((ranks > 0).sum(axis=1) >= MANY_TASKS) & ((p < near[0] / DOUBT) | (p > near[1] * DOUBT))
        p[~clear] = lower_tail(ranks[~clear], at[~clear])
        return p
    total = ranks.sum(axis=1)
    above = 2 * at > total  # W is symmetric about half the sum of the ranks
    place = np.where(above, total - at - 1, at)
    patterns = np.sort(ranks.astype(np.int16), axis=1)  # at most 2 EXACT_UP_TO
    order = np.lexsort(patterns.T[::-1])  # patterns that begin alike follow each other
    order = order[place[order] >= 0]
    p, patterns = np.zeros(len(ranks)), patterns[order]
    if len(order):
        counts = _counted(patterns, place[order], _empty(place.max()))
        p[order] = np.ldexp(counts, -(patterns > 0).sum(axis=1))
    return np.where(above, 1.0 - p, p)


def _counted(patterns: NDArray[np.int16], at: Ints, counts: Floats, done: int = 0, reached: int = 0) -> Floats:
    """Return the number of sign patterns with 2 W+ <= at [P] for ascending rows [P, n] in lexical order.

    counts: those of every sum of the first `done` ranks, which the rows share, up to the largest of `at` at least;
    reached: the largest such sum. What rows share is counted once, for the most of them without a copy.
    """
    totals, rows, counts = np.empty(len(at)), slice(0, len(at)), counts[: at.max() + 1].copy()
    while True:
        first = patterns[rows.start]
        parted = np.flatnonzero(first != patterns[rows.stop - 1])
        shared = int(parted[0]) if len(parted) else len(first)
        reached = _add_ranks(counts, first[done:shared].tolist(), reached)
        if shared == len(first) or first[shared] >= len(counts):  # ranks above `at` are in no such sum
            totals[rows] = counts.cumsum()[at[rows]]
            return totals
        new = np.flatnonzero(np.diff(patterns[rows, shared])) + 1
        edges = [rows.start, *(rows.start + new).tolist(), rows.stop]
        *others, rows = sorted(map(slice, edges[:-1], edges[1:]), key=length)
        for few in others:
            totals[few] = _counted(patterns[few], at[few], counts, shared, reached)
        counts, done = counts[: at[rows].max() + 1], shared


def _empty(largest: int) -> Floats:
    """Return the counts of the sums 0 to `largest` of no ranks: the sum 0, once."""
    counts = np.zeros(largest + 1)
    counts[0] = 1.0
    return counts


def _add_ranks(counts: Floats, ranks: list[int], reached: int) -> int:
    """Add ascending ranks to the counts of sums from 0 up to `reached`, the largest so far; return the largest then."""
    now, then = counts, np.zeros_like(counts)  # in place each rank would take a copy of what it reads
    for rank in ranks:
        if rank >= len(counts):
            break
        if rank:
            reached = min(len(counts) - 1, reached + rank)
            then[:rank] = now[:rank]
            np.add(now[rank : reached + 1], now[: reached + 1 - rank], out=then[rank : reached + 1])
            now, then = then, now
    if now is not counts:
        counts[:] = now
    return reached


@lru_cache(maxsize=64)
def null_lower_tail(doubled: tuple[int, ...]) -> Floats:
    """Return P(2 W+ <= w) for w = 0 .. half of the largest, under the null, for these doubled midranks.

    The sign patterns are counted, and divided by 2^n at the end: up to 53 tasks every digit is exact.
    """
    counts = _empty(sum(doubled) // 2)
    _add_ranks(counts, sorted(doubled), 0)
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
