"""Standard deviations of runs and their ratios: what a machine changes beside a seed, what a recipe makes of seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.sign_flip import flip_means
from analysis.statistics.variance import NOISE

FEWEST_PAIRED = 4  # seeds: with three a ratio of spreads is known within a factor of hundreds
FEWEST_TOLD = 6  # of 2^5 flips the observed one and its mirror are more than .05


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


@dataclass(frozen=True)
class PairedRatio:
    """The `ratio` of two standard deviations of paired values, the ends `low`, `high` of its interval, and p that it is
    1; all nan below four pairs, or where either does not vary."""

    ratio: float
    low: float
    high: float
    p: float


def paired_ratio(one: Floats, other: Floats, level: float = 0.95) -> PairedRatio:
    """Return the spread of `other` by that of `one`, [n] values of the same n seeds each.

    Of two normal values with one spread, sum and difference are uncorrelated, whatever ties them to each other (Pitman
    1939, Biometrika 31; Morgan 1939, ibid.). The interval holds the ratios that a test of this correlation, with n - 2
    degrees of freedom, does not reject: with K = 1 + 2 (1 - r^2) t^2 / (n - 2) the variances' ratio times
    K -+ sqrt(K^2 - 1). Of skewed values that test rejects too often, so p is of another: where the two values of a seed
    may change places, the sign of x^2 - y^2 is a coin's. x and y are measured from their medians; from their means p
    would be too small. Five seeds or fewer allow no p below .05.
    """
    from scipy.stats import t

    n = len(one)
    squares = np.var(one, ddof=1), np.var(other, ddof=1)
    if n < FEWEST_PAIRED or min(squares) < NOISE:
        return PairedRatio(*[float("nan")] * 4)
    r2 = float(np.corrcoef(one, other)[0, 1]) ** 2
    of_squares = float(squares[1] / squares[0])
    k = 1 + 2 * (1 - r2) * float(t.ppf((1 + level) / 2, n - 2)) ** 2 / (n - 2)
    ends = of_squares * (k - np.sqrt(k**2 - 1)), of_squares * (k + np.sqrt(k**2 - 1))
    low, high = (float(np.sqrt(end)) for end in ends)
    of_one, of_other = one - np.median(one), other - np.median(other)
    p = flip_means((of_one**2 - of_other**2)[None]).p[0]
    return PairedRatio(float(np.sqrt(of_squares)), low, high, float(p))
