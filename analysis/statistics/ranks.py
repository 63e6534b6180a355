"""Ranks of designs within each task, their critical difference, and the tests after Friedman's.

Rank 1 is the best design of a task; designs with equal scores share the mean of their ranks (midranks).
"""

from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata, studentized_range

from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.correction import holm


@dataclass(frozen=True)
class CriticalDifference:
    """The data that the diagram of Demsar (2006, figure 1) shows.

    `ranks`: design -> average rank over tasks, best first; `cd`: the critical difference, in ranks; `cliques`: the
    bars, each the designs (best first) among which no two differ by `cd` or more, at least two of them.
    """

    ranks: dict[str, float]
    cd: float
    cliques: list[list[str]]
    alpha: float


def critical_difference(matrix: pd.DataFrame, alpha: float = 0.05, decimals: int = 12) -> CriticalDifference:
    """Return the data of the diagram for tasks x designs; scores are rounded to `decimals` before ranking."""
    averages = task_ranks(matrix.to_numpy(dtype=float), decimals).mean(axis=0)
    cd = nemenyi_distance(len(averages), len(matrix), alpha)
    names = [str(name) for name in matrix.columns]
    bars = [[names[j] for j in clique] for clique in cliques(averages, cd) if len(clique) > 1]
    ranks = {names[j]: float(averages[j]) for j in np.argsort(averages, kind="stable")}
    return CriticalDifference(ranks, cd, bars, alpha)


def task_ranks(scores: Floats, decimals: int = 12) -> Floats:
    """Return the midranks of [n tasks, k designs] within each task, the highest score first; [n, k]."""
    return np.asarray(rankdata(-rounded(scores, decimals), axis=1), dtype=np.float64)


def rank_error(k: int, n: int) -> float:
    """Return the standard error of the difference of two average ranks, sqrt(k (k + 1) / (6 n)) (Demsar 2006, 3.2.2):
    without ties exact under the null hypothesis, with ties too large, so tests that use it are cautious."""
    return float(np.sqrt(k * (k + 1) / (6 * n)))


def nemenyi_distance(k: int, n: int, alpha: float) -> float:
    """Return Nemenyi's critical difference of average ranks, q_alpha sqrt(k (k + 1) / (6 n)) (Demsar 2006, 3.2.2).

    q_alpha: the studentized range of k means with infinite degrees of freedom, divided by sqrt(2).
    """
    return float(studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)) * rank_error(k, n)


def cliques(averages: Floats, cd: float) -> list[tuple[int, ...]]:
    """Return the maximal sets of positions in which no two average ranks differ by `cd` or more, the best set first.

    On a line such a set is a run of neighbours; each position is in one at least, perhaps alone. Positions within a
    set go from best to worst, equal ranks in the order given.
    """
    order = np.argsort(averages, kind="stable")
    values = np.asarray(averages)[order]
    runs, reached = [], 0
    for start in range(len(values)):
        stop = start + int(np.sum(values[start:] - values[start] < cd)) if cd > 0 else start + 1
        if stop > reached:  # else the run before holds this one
            runs.append(tuple(order[start:stop].tolist()))
            reached = stop
    return runs


def letters(groups: list[tuple[int, ...]], k: int) -> list[str]:
    """Return for each of k positions the letters of its sets, which two not told apart share; none beyond 26 sets."""
    sets = list(map(set, groups if len(groups) <= len(ascii_lowercase) else []))
    return ["".join(c for c, group in zip(ascii_lowercase, sets, strict=False) if j in group) for j in range(k)]


def against_control(averages: Floats, n: int, control: int) -> dict[str, Floats]:
    """Compare k average ranks over n tasks with that at position `control` (Demsar 2006, section 3.2.2).

    z = (R_j - R_control) / sqrt(k (k + 1) / (6 n)), below zero where design j ranks better; two-sided normal p; Holm
    over the k - 1 comparisons. Return `z`, `p` and `p_holm`, each [k] and nan for the control itself.
    """
    k = len(averages)
    others = np.arange(k) != control
    z = np.where(others, (averages - averages[control]) / rank_error(k, n), np.nan)
    p = 2 * norm.sf(np.abs(z))
    adjusted = np.full(k, np.nan)
    adjusted[others] = holm(p[others])
    return {"z": z, "p": p, "p_holm": adjusted}


def nemenyi_p(differences: Floats, k: int, n: int) -> Floats:
    """Return Nemenyi's p of differences of average ranks, corrected for all k (k - 1) / 2 pairs (Demsar 2006, 3.2.2):
    P(range of k standard normals > sqrt(2) |difference| / standard error), from the studentized range."""
    steps = np.rint(np.abs(differences) * 2 * n)  # average ranks are multiples of 1 / (2 n): each one once
    values, which = np.unique(steps, return_inverse=True)
    p = studentized_range.sf(np.sqrt(2) * values / (2 * n) / rank_error(k, n), k, np.inf)
    return np.asarray(np.clip(p, 0, 1)[which], dtype=np.float64)
