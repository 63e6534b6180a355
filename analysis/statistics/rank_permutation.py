"""The permutation distribution of Friedman's statistic: without an effect, every order of a task's ranks is as likely.

chi2, F and W all grow with the sum of squared rank sums, and ties leave that so, as permuting within a task keeps them.
"""

from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SEED = 0
STATES = 200_000  # rank-sum vectors looked at for one task; beyond them permutations are drawn, not counted
# (scores at most, permutations drawn): p has a standard error of .0007 or .002 at .05
DRAWS = ((200, 99_999), (2_000, 9_999))
CHUNK = 2_000_000  # ranks permuted at once


@dataclass(frozen=True)
class Permuted:
    """`count`: permutations drawn, 0 where all were counted (`exact`) or none (p is nan)."""

    p: float
    p_min: float
    exact: bool
    count: int


def permutation_p(doubled: Ints) -> Permuted:
    """Return P(statistic at least as large) for twice the midranks [n tasks, k designs].

    Exact by counting where that is cheap: three designs with any usual number of tasks, four with about 20, five with
    six. Else 99,999 or 9,999 permutations within tasks from seed 0, p = (b + 1) / (m + 1) (Phipson and Smyth 2010);
    more than 2,000 scores are not permuted, since the F distribution then holds well.
    """
    observed = int((doubled.sum(axis=0) ** 2).sum())
    counted = null_distribution(doubled)
    if counted is not None:
        values, weights = counted
        tail, top = weights[values >= observed].sum(), weights[values == values.max()].sum()
        return Permuted(min(1.0, float(tail)), min(1.0, float(top)), True, 0)
    count = next((draws for most, draws in DRAWS if doubled.size <= most), 0)
    if not count:
        return Permuted(np.nan, np.nan, False, 0)
    generator, size, as_large = np.random.default_rng(SEED), max(1, CHUNK // doubled.size), 0
    for start in range(0, count, size):
        copies = np.broadcast_to(doubled, (min(size, count - start), *doubled.shape))
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
