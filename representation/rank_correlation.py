"""Spearman's correlation over few cells, with an interval."""

from dataclasses import dataclass
from math import atanh, isnan, nan, sqrt, tanh

import numpy as np
from numpy.typing import ArrayLike

FEWEST = 4  # cells: with three the interval is endless


@dataclass(frozen=True)
class Correlation:
    """`rho` over `n` cells and the interval of its level; NaN where one side does not vary, or cells are too few."""

    rho: float
    low: float
    high: float
    n: int

    @property
    def told(self) -> bool:
        """Whether the interval leaves 0 out."""
        return not isnan(self.low) and not self.low <= 0 <= self.high


def spearman(first: ArrayLike, second: ArrayLike, alpha: float = 0.05) -> Correlation:
    """Spearman's rho with the interval of Bonett and Wright (2000), "Sample size requirements for estimating Pearson,
    Kendall and Spearman correlations": Fisher's z with standard error sqrt((1 + rho^2 / 2) / (n - 3)).

    A bootstrap over so few cells draws the same cell again and again, and its intervals are too short. At rho = +-1
    z is endless, so the interval is of the largest rho short of 1 that n cells without ties can have.
    """
    from scipy.stats import norm, rankdata

    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(nan, nan, nan, n)
    rho = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
    if n < FEWEST:
        return Correlation(rho, nan, nan, n)
    bounded = float(np.clip(rho, -1 + _step(n), 1 - _step(n)))
    reach = float(norm.ppf(1 - alpha / 2)) * sqrt((1 + bounded**2 / 2) / (n - 3))
    middle = atanh(bounded)
    return Correlation(rho, min(rho, tanh(middle - reach)), max(rho, tanh(middle + reach)), n)


def _step(n: int) -> float:
    """How far below 1 the next rho is: 6 * 2 / (n^3 - n), two neighbours of a ranking exchanged."""
    return 12 / (n**3 - n)
