"""Friedman's test over many designs, with the F of Iman and Davenport, Kendall's W, and a permutation p."""

from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.statistics.arrays import Floats, Ints, blocks, length

SEED = 0
STATES = 200_000  # rank-sum vectors looked at for one task; beyond them permutations are drawn, not counted
# (scores at most, permutations drawn): p has a standard error of .0007 or .002 at .05
DRAWS = ((200, 99_999), (2_000, 9_999))
CHUNK = 2_000_000  # ranks permuted at once


class Permuted(NamedTuple):
    """`permutations`: how many were drawn, 0 where all were counted (`exact`) or none (p is nan)."""

    p: float
    p_min: float
    exact: bool
    permutations: int


def permutation_p(doubled: Ints) -> Permuted:
    """Return P(statistic at least as large) for twice the midranks [n tasks, k designs].

    Exact by counting where that is cheap: three designs with any usual number of tasks, four with about 20, five with
    six. Else 99,999 or 9,999 permutations within tasks from seed 0, p = (b + 1) / (m + 1) (Phipson and Smyth 2010);
    more than 2,000 scores are not permuted, since the F distribution then holds well.
    """
    observed = int((doubled.sum(axis=0) ** 2).sum())
    if (counted := null_distribution(doubled)) is not None:
        values, weights = counted
        tail, top = weights[values >= observed].sum(), weights[values == values.max()].sum()
        return Permuted(min(1.0, float(tail)), min(1.0, float(top)), True, 0)
    count = next((draws for most, draws in DRAWS if doubled.size <= most), 0)
    if not count:
        return Permuted(np.nan, np.nan, False, 0)
    generator, as_large = np.random.default_rng(SEED), 0
    for block in blocks(count, CHUNK // doubled.size):
        copies = np.broadcast_to(doubled, (length(block), *doubled.shape))
        sums = generator.permuted(copies, axis=2).sum(axis=1)
        as_large += int(((sums**2).sum(axis=1) >= observed).sum())
    return Permuted((as_large + 1) / (count + 1), np.nan, False, count)


def null_distribution(doubled: Ints) -> tuple[Ints, Floats] | None:
    """Return values of the sum of squared rank sums and their probabilities, None where there are too many.

    Task by task all permutations are added to the rank sums. Which design holds which sum does not matter to the
    statistic, and all assignments are equally likely, so only sorted vectors of sums are kept, with their probability.
    """
    n, k = doubled.shape
    base = 2 * k * n + 1  # larger than any rank sum: a vector is one whole number
    if doubled.size > DRAWS[-1][0] or factorial(min(k, 20)) > STATES or base**k >= 2**62:
        return None
    powers = base ** np.arange(k, dtype=np.int64)
    states, weights = np.sort(doubled[:1], axis=1), np.ones(1, dtype=np.float64)
    for row in doubled[1:]:
        orders = np.array(sorted(set(permutations(row.tolist()))))
        if len(states) * len(orders) > STATES:
            return None
        sums = np.sort((states[:, None] + orders).reshape(-1, k), axis=1)
        _, first, which = np.unique(sums @ powers, return_index=True, return_inverse=True)
        shares = np.repeat(weights / len(orders), len(orders))
        weights = np.asarray(np.bincount(which, weights=shares), dtype=np.float64)
        states = sums[first]
    return (states**2).sum(axis=1), weights


@dataclass(frozen=True)
class Friedman:
    """`average_ranks` [k], 1 is best; `w`: Kendall's W, 0 (the tasks rank at random) to 1 (all alike), the effect size.

    `p_permutation` is nan where there are too many scores to permute; then `p_f` holds well. `p_min`: the smallest
    p that these ties and so many tasks allow, nan where not all permutations were counted; `exact`: whether they were.
    """

    average_ranks: Floats
    chi2: float
    df: int
    p_chi2: float
    f: float
    df1: int
    df2: int
    p_f: float
    w: float
    p_permutation: float
    p_min: float
    exact: bool
    permutations: int

    @property
    def p(self) -> float:
        """The p to report: of the permutations, else of F."""
        return self.p_f if np.isnan(self.p_permutation) else self.p_permutation


def friedman(ranks: Floats) -> Friedman:
    """Test the ranks within tasks, [n >= 2 tasks, k >= 3 designs] (midranks where scores tie).

    With R_j the rank sums, chi2 = (k - 1) sum_j (R_j - n (k + 1) / 2)^2 / (sum r^2 - n k (k + 1)^2 / 4), which corrects
    for ties (Conover 1999, section 5.8); F = (n - 1) chi2 / (n (k - 1) - chi2) with k - 1 and (k - 1)(n - 1) degrees
    of freedom (Iman and Davenport 1980); W = chi2 / (n (k - 1)). Where every score of every task ties, chi2 is 0.
    """
    n, k = ranks.shape
    doubled = np.rint(2 * ranks).astype(np.int64)  # whole numbers, so that equal statistics are equal
    spread = int((doubled**2).sum()) - n * k * (k + 1) ** 2
    between = int(((doubled.sum(axis=0) - n * (k + 1)) ** 2).sum())
    w = between / (n * spread) if spread else 0.0
    chi2, df1, df2 = n * (k - 1) * w, k - 1, (k - 1) * (n - 1)
    f = (n - 1) * w / (1 - w) if w < 1 else np.inf
    p_chi2, p_f = float(stats.chi2.sf(chi2, df1)), float(stats.f.sf(f, df1, df2))
    return Friedman(ranks.mean(axis=0), chi2, df1, p_chi2, float(f), df1, df2, p_f, w, *permutation_p(doubled))
