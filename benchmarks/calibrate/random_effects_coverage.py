"""A pair as a meta-analysis of its tasks: `python -m benchmarks.calibrate.random_effects_coverage [sets=2000]`

The spread of items differs between tasks by up to a factor of four, so variances, estimated from the items, by up to
16; the true mean is 0, tau is in roots of the mean variance. In per cent: how often 95 % intervals hold their target
(the mean, a further task's true difference, tau), and how often Q rejects tau = 0 at .05. Last the root mean square
error of tau^2 in mean variances. Each beside what was not taken; docs/tables/calibration.md has the table.
"""

from itertools import product

import numpy as np
from scipy.stats import chi2

from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.intervals import student_interval, student_reach
from analysis.statistics.random_effects import random_effects
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

ITEMS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "one in five": lambda rng, shape: np.where(rng.random(shape) < 0.2, rng.normal(size=shape), 0) * 5**0.5,
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
}
WORLDS = (("normal", 100), ("normal", 10), ("one in five", 100), ("exponential", 100))
MEAN_SQUARE = 15 / (4 * np.log(2))  # of spreads from 1 to 4, alike on a scale of logarithms
STEPS = 200
OF_MEAN = ("mean", "Hartung-Knapp", "the same, REML", "the same, tau = 0", "plain mean, t")
TARGETS = (*OF_MEAN, "further task", "interval of tau", "Q, Welch", "Q, chi-square")


def reml(y: Floats, v: Floats) -> Floats:
    """Return tau^2 [P] of the restricted likelihood of y [P, k] with variances v, by Fisher scoring."""
    tau2 = y.var(axis=1, ddof=1)
    for _ in range(STEPS):
        w = 1 / (v + tau2[:, None])
        whole = w.sum(axis=1)
        left = (y - ((w * y).sum(axis=1) / whole)[:, None]) ** 2 - v
        tau2 = np.maximum(0, (w**2 * left).sum(axis=1) / (w**2).sum(axis=1) + 1 / whole)
    return np.asarray(tau2, dtype=np.float64)


def knapp(y: Floats, v: Floats, tau2: Floats) -> tuple[Floats, Floats]:
    """Return the mean [P] and its error of Hartung and Knapp at a given tau^2 [P]."""
    w = 1 / (v + tau2[:, None])
    mean = (w * y).sum(axis=1) / w.sum(axis=1)
    return mean, np.sqrt((w * (y - mean[:, None]) ** 2).sum(axis=1) / w.sum(axis=1) / (y.shape[1] - 1))


def rates(y: Floats, v: Floats, freedom: int, tau: float, new: Floats) -> list[float]:
    """Return the shares of `TARGETS`; new: true differences [P] on a further task."""
    fits, df, by_reml = random_effects(y, v, np.full(y.shape[1], freedom)), y.shape[1] - 1, reml(y, v)
    means = [(fits.mean, fits.error), *(knapp(y, v, tau2) for tau2 in (fits.tau**2, by_reml, 0 * by_reml))]
    covered: list[Bools] = [np.abs(mean) <= student_reach(error, df, 0.95) for mean, error in means]
    low, high = student_interval(y)
    covered += [(low <= 0) & (high >= 0), (fits.new_low <= new) & (fits.new_high >= new)]
    covered += [(fits.tau_low <= tau) & (fits.tau_high >= tau), fits.p_q <= 0.05, chi2.sf(fits.q, df) <= 0.05]
    squares = [np.sqrt(np.mean((tau2 - tau**2) ** 2)) / v.mean() for tau2 in (fits.tau**2, by_reml)]
    return [float(one.mean()) for one in [*covered, *squares]]


def main() -> None:
    """Print a Markdown table."""
    sets = number_of_sets(2000)
    print_head("tasks", "items", "tau", *TARGETS, "error", "error, REML", texts=2)
    for seed, (k, (kind, n), ratio) in enumerate(product((8, 40, 56), WORLDS, (0.0, 0.5, 1.0, 3.0))):
        rng = np.random.default_rng(seed)
        tau = ratio * float(np.sqrt(MEAN_SQUARE / n))
        spread = 4 ** rng.random((sets, k, 1))
        items = tau * rng.normal(size=(sets, k, 1)) + spread * ITEMS[kind](rng, (sets, k, n))
        columns = rates(items.mean(axis=2), items.var(axis=2, ddof=1) / n, n - 1, tau, tau * rng.normal(size=sets))
        *shares, error, by_reml = columns
        print_row(k, f"{n}, {kind}", f"{ratio:g}", *per_cent(shares), f"{error:.2f}", f"{by_reml:.2f}")


if __name__ == "__main__":
    guard(main)
