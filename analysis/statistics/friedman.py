"""Friedman's test over many designs, with the F of Iman and Davenport, Kendall's W, and a permutation p."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.rank_permutation import permutation_p

Floats = NDArray[np.float64]


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
    from scipy import stats

    n, k = ranks.shape
    doubled = np.rint(2 * ranks).astype(np.int64)  # whole numbers, so that equal statistics are equal
    spread = int((doubled**2).sum()) - n * k * (k + 1) ** 2
    between = int(((doubled.sum(axis=0) - n * (k + 1)) ** 2).sum())
    w = between / (n * spread) if spread else 0.0
    chi2, df1, df2 = n * (k - 1) * w, k - 1, (k - 1) * (n - 1)
    f = (n - 1) * w / (1 - w) if w < 1 else np.inf
    drawn = permutation_p(doubled)
    return Friedman(
        ranks.mean(axis=0),
        chi2,
        k - 1,
        float(stats.chi2.sf(chi2, k - 1)),
        float(f),
        df1,
        df2,
        float(stats.f.sf(f, df1, df2)),
        w,
        drawn.p,
        drawn.p_min,
        drawn.exact,
        drawn.count,
    )
