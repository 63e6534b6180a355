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


def least_told(n: int, alpha: float = 0.05) -> float | None:
    """The smallest |rho| of n cells without ties whose interval leaves 0 out; None where not even 1 does."""
    if n < FEWEST:
        return None
    each = (1 - k * _step(n) for k in range(int(1 / _step(n)), -1, -1))
    return next((rho for rho in each if _interval(rho, n, alpha)[0] > 0), None)


def spearman(first: ArrayLike, second: ArrayLike, alpha: float = 0.05) -> Correlation:
    """Spearman's rho with the interval of Bonett and Wright (2000), "Sample size requirements for estimating Pearson,
    Kendall and Spearman correlations": Fisher's z with standard error sqrt((1 + rho^2 / 2) / (n - 3)).

    A bootstrap over so few cells draws the same cell again and again, and its intervals are too short. At rho = +-1
    z is endless, so the interval is of the largest rho short of 1 that n cells without ties can have.
    """
    from scipy.stats import rankdata

    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(nan, nan, nan, n)
    rho = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
    if n < FEWEST:
        return Correlation(rho, nan, nan, n)
    return Correlation(rho, *_interval(rho, n, alpha), n)


def _interval(rho: float, n: int, alpha: float) -> tuple[float, float]:
    from scipy.stats import norm

    bounded = min(max(rho, -1 + _step(n)), 1 - _step(n))
    reach = float(norm.ppf(1 - alpha / 2)) * sqrt((1 + bounded**2 / 2) / (n - 3))
    return min(rho, tanh(atanh(bounded) - reach)), max(rho, tanh(atanh(bounded) + reach))


def _step(n: int) -> float:
    """How far below 1 the next rho is: 6 * 2 / (n^3 - n), two neighbours of a ranking exchanged."""
    return 12 / (n**3 - n)
