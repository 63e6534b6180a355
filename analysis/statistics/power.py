"""Power of the exact signed-rank test by simulation from the differences seen: no normal curve is assumed.

The differences of one pair, centred, are drawn with replacement, shifted by an effect and tested (bootstrap power,
Efron and Tibshirani 1993, section 25.6). What matters of such a sample is how often each task was drawn, so a sample is
a row of counts, and its signed-rank statistic follows from cumulated counts without any sorting. The counts do not
depend on the pair: every pair and every effect is tested on the same draws.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.arrays import Floats, Ints, rounded
from analysis.statistics.wilcoxon import largest_by_normal_curve

Counts = NDArray[np.int32]

SAMPLES = 2000  # standard error of a power of .8: .009
SEED = 0
TARGET = 0.8
MOST_TASKS = 500  # the search for the number of tasks ends here
LEAST_TASKS = 5  # fewer differences say too little about their spread
STEPS = 12  # halvings of the search for the smallest difference: 10 SD / 2^12 = .0024 SD
SIZES = np.unique(np.r_[1:40, 40:100:2, 100:200:5, 200 : MOST_TASKS + 1 : 10])  # steps of at most 5 %


@dataclass(frozen=True)
class Shifted:
    """The differences of one pair [n]: `at(effect)` are the values of its tasks, were the mean difference `effect`."""

    differences: Floats

    @property
    def mean(self) -> float:
        """The difference observed."""
        return float(self.differences.mean())

    @property
    def spread(self) -> float:
        """Standard deviation over tasks (n - 1); NaN of one task."""
        return float(self.differences.std(ddof=1)) if len(self.differences) > 1 else float("nan")

    def at(self, effect: float, decimals: int = 12) -> Floats:
        """Return [n]: centred, widened by sqrt(n / (n - 1)), since draws from n values vary too little, and shifted.

        At least two tasks.
        """
        d = self.differences
        return rounded(effect + (d - d.mean()) * np.sqrt(len(d) / (len(d) - 1)), decimals)


def critical_value(level: float, n: Ints) -> Ints:
    """Return `critical_values` for each n of an array; beyond 500 by the normal curve with continuity correction."""
    exact = critical_values(level, MOST_TASKS)[np.minimum(n, MOST_TASKS)]
    return np.where(n <= MOST_TASKS, exact, largest_by_normal_curve(n, level / 2)).astype(np.int64)


@lru_cache(maxsize=64)
def critical_values(level: float, most: int = MOST_TASKS) -> Ints:
    """Return [most + 1]: for each n the largest W with 2 P(min(W+, W-) <= W) at most `level`; -1 where none has it.

    For ranks without ties. The null distribution of n tasks follows from that of n - 1, so one pass serves all n.
    """
    limits = np.full(most + 1, -1)
    density = np.zeros(most * (most + 1) // 4 + 1)  # the lower half
    density[0] = 1.0
    for n in range(1, most + 1):
        top = min(len(density), n * (n + 1) // 2 + 1)
        shifted = density[: max(0, top - n)].copy()
        density[:top] *= 0.5
        density[n:top] += 0.5 * shifted
        below = np.searchsorted(np.cumsum(density[: n * (n + 1) // 4 + 1]), level / 2 * (1 + 1e-9), side="right")
        limits[n] = below - 1
    limits.setflags(write=False)
    return limits


@lru_cache(maxsize=256)
def draws(n_seen: int, n_tasks: int) -> Counts:
    """Return counts [SAMPLES, n_seen]: how often each task seen is in a sample of `n_tasks`, from a fixed seed.

    The counts of a task lie beside each other in the memory.
    """
    generator = np.random.default_rng([SEED, n_seen, n_tasks])
    counts = generator.multinomial(n_tasks, np.full(n_seen, 1 / n_seen), size=SAMPLES).astype(np.int32, order="F")
    counts.setflags(write=False)
    return counts


def statistics(values: Floats, counts: Counts) -> tuple[Floats, Ints]:
    """Return for each sample min(W+, W-) and the number of differences other than zero, [samples] each.

    values [k] are the differences, counts [samples, k] how often each is in a sample. Ties have midranks; zeros are
    dropped. A task drawn twice stands for two tasks that are almost alike: it ties with itself alone, with one sign,
    and W+ is the same however such ties are broken.
    """
    order = np.argsort(np.abs(values), kind="stable")
    size, plus = np.abs(values)[order], values[order] > 0
    up_to = np.zeros((len(values) + 1, len(counts)), dtype=np.int32)
    for k, task in enumerate(order.tolist()):  # np.cumsum along this axis takes several times as long
        np.add(up_to[k], counts[:, task], out=up_to[k + 1])
    zeros = up_to[np.searchsorted(size, 0.0, side="right")]
    first, last = (np.searchsorted(size, size[plus], side=side) for side in ("left", "right"))  # of each run of ties
    doubled = up_to[first] + up_to[last] + 1 - 2 * zeros
    w_plus = np.einsum("ts,ts->s", counts.T[order[plus]], doubled, dtype=np.int64) / 2
    n = (up_to[-1] - zeros).astype(np.int64)
    return np.minimum(w_plus, n * (n + 1) / 2 - w_plus), n


def power(values: Floats, level: float, n_tasks: int | None = None) -> float:
    """Return the share of samples of `n_tasks` (default: as many as values) that the two-sided test rejects."""
    n_tasks = n_tasks or len(values)
    if critical_value(level, np.array(n_tasks)) < 0:
        return 0.0
    smaller, n = statistics(values, draws(len(values), n_tasks))
    return float((smaller <= critical_value(level, n)).mean())


def tasks_needed(values: Floats, level: float) -> float:
    """Return the smallest number of tasks with a power of .8, in steps of at most 5 %; NaN beyond 500."""
    if power(values, level, int(SIZES[-1])) < TARGET:
        return float("nan")
    least = int(np.searchsorted(SIZES, smallest_n(level)))
    enough = bisect_left(SIZES, True, least, len(SIZES) - 1, key=lambda n: power(values, level, int(n)) >= TARGET)
    return float(SIZES[enough])


def detectable(pair: Shifted, level: float) -> float:
    """Return the smallest mean difference that so many tasks find with a power of .8; NaN where none can pass.

    Its direction is that of the observed difference: a skewed spread has another answer on either side.
    """
    n = len(pair.differences)
    if critical_value(level, np.array(n)) < 0:
        return float("nan")
    sign = -1.0 if pair.mean < 0 else 1.0
    low, high = 0.0, 10 * pair.spread
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = power(pair.at(sign * middle), level, n) >= TARGET
        low, high = (low, middle) if enough else (middle, high)
    return high


def smallest_n(level: float) -> int:
    """Return the smallest number of differences other than zero at which any result can reach `level`: 2/2^n."""
    return int(np.argmax(critical_values(level) >= 0))
