"""Standard deviations along the two axes of a table of runs, and their ratio: what a machine changes beside a seed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.variance import NOISE


@dataclass(frozen=True)
class Spread:
    """A variance and its degrees of freedom."""

    variance: float
    df: float

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.variance))


def spread(table: Floats) -> Spread:
    """Return how far the runs of `table` [S, M] differ within a row: over M machines at one seed.

    Both are random: run = mean + seed + machine + rest. The mean variance within a row estimates machine + rest; it is
    MS_machine / S + (S - 1) MS_rest / S, whose parts have M - 1 and (S - 1)(M - 1) degrees of freedom. Those of the sum
    by Satterthwaite (1946, Biometrics 2): between M - 1 and S (M - 1). The transpose has the seeds on one machine.
    """
    rows, columns = table.shape
    if columns < 2:
        return Spread(float("nan"), float("nan"))
    whole, common = table.var(axis=1, ddof=1).mean(), table.mean(axis=0).var(ddof=1)
    if whole < NOISE:
        return Spread(0.0, rows * (columns - 1.0))
    rest = (whole - common) ** 2 / max(rows - 1, 1)
    return Spread(float(whole), float((columns - 1) * whole**2 / (common**2 + rest)))


def pooled(spreads: Sequence[Spread]) -> Spread:
    """Return the mean variance of independent spreads and, by Satterthwaite, its degrees of freedom."""
    variances, df = (np.array([getattr(one, name) for one in spreads]) for name in ("variance", "df"))
    whole, doubt = variances.sum(), (variances**2 / df).sum()
    return Spread(float(whole / len(spreads)), float(whole**2 / doubt) if doubt else float(df.sum()))


def ratio(one: Spread, other: Spread, level: float = 0.95) -> tuple[float, float, float]:
    """Return the ratio of two standard deviations and the ends of its interval, by F; nan where `other` is 0.

    `one` and `other` are of the axes of one table, so they share its rest. Where that is most of both, they go up and
    down together, and the interval holds the ratio more often than `level` says.
    """
    from scipy.stats import f

    if not other.variance > 0:
        return (float("nan"),) * 3
    value = one.variance / other.variance
    low, high = value / f.ppf([(1 + level) / 2, (1 - level) / 2], one.df, other.df)
    return tuple(np.sqrt([value, low, high]).tolist())
