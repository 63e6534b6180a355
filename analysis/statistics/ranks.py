"""All designs at once: Friedman's test over ranks within tasks, and which average ranks differ (Nemenyi).

Rank 1 is the best design of a task; designs with equal scores share the mean of their ranks (midranks).
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.arrays import Floats, rounded


@dataclass(frozen=True)
class Friedman:
    """`average_ranks` [k], 1 is best; `w`: Kendall's W, 0 (the tasks rank at random) to 1 (all alike), the effect size;
    `f`, `df1`, `df2`, `p_f`: the statistic of Iman and Davenport (1980)."""

    average_ranks: Floats
    w: float
    f: float
    df1: int
    df2: int
    p_f: float


def friedman(scores: Floats) -> Friedman:
    """Test scores [n >= 2 tasks, k >= 3 designs], rounded before ranking.

    W = chi2 / (n (k - 1)), with Friedman's statistic corrected for ties; F = (n - 1) W / (1 - W). Where every score of
    every task ties, both are 0.
    """
    ranks = stats.rankdata(-rounded(scores), axis=1)  # midranks within each task, the highest score first
    n, k = ranks.shape
    tied = bool((ranks == (k + 1) / 2).all())
    w = 0.0 if tied else float(stats.friedmanchisquare(*ranks.T).statistic) / (n * (k - 1))
    f, df1, df2 = (n - 1) * w / (1 - w) if w < 1 - 1e-12 else np.inf, k - 1, (k - 1) * (n - 1)
    return Friedman(ranks.mean(axis=0), w, f, df1, df2, float(stats.f.sf(f, df1, df2)))


def nemenyi_distance(k: int, n: int, alpha: float) -> float:
    """Return Nemenyi's critical difference of average ranks, q_alpha sqrt(k (k + 1) / (6 n)) (Demsar 2006, 3.2.2).

    q_alpha: the studentized range of k means with infinite degrees of freedom, divided by sqrt(2).
    """
    q = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))
