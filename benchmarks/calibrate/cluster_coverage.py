"""Coverage of the intervals of a mean over tasks that come in clusters.

    python -m benchmarks.calibrate.cluster_coverage sets=4000

Tasks of one cluster share a part of their difference (correlation rho). Shared and own parts are drawn from the
differences of the embedded study as `benchmarks.calibrate.null_worlds` draws them, from an exponential
(skewness 2), or normal
with spreads that differ by a factor of ten; the true mean is 0. Printed: the share of 95 % intervals that hold 0, and
the median widths. The percentile interval is for comparison. docs/decisions/clusters.md quotes it.
"""

from collections.abc import Callable

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.clusters import cluster_interval
from analysis.statistics.intervals import student_interval
from analysis.statistics.sign_flip import bootstrap_counts, percentile_interval
from benchmarks.arguments import only
from benchmarks.calibrate.null_worlds import Spreads, as_they_are, read_spreads, skewed_mean, unequal_spread
from cli.errors import guard

World = Callable[[np.random.Generator, Spreads, int, int], Floats]

WORLDS: dict[str, World] = {"embedded study": as_they_are, "skewness 2": skewed_mean, "unequal spread": unequal_spread}
SIZES = {
    "6 x 5": [5] * 6,
    "8 x 5": [5] * 8,
    "8 of 1 to 12": [1, 1, 2, 3, 5, 7, 9, 12],
    "20 x 2": [2] * 20,
    "12 of 1 to 8": [1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7, 8],
}
DRAWS = 999
NAMES = ("tasks, t", "clusters, percentile", "clusters, t")


def main() -> None:
    """Print one row a (differences, clusters, rho)."""
    sets, spreads = only("sets", 4000), read_spreads(None)
    print(f"| differences | clusters | rho | {' | '.join(NAMES)} | median widths |\n|---|---|---:|---:|---:|---:|---|")
    for name, world in WORLDS.items():
        for clusters, sizes in SIZES.items():
            for rho in (0.0, 0.3, 0.6):
                rng = np.random.default_rng(0)
                members = np.repeat(np.eye(len(sizes)), sizes, axis=1)
                shared, own = (world(rng, spreads, sets, n) for n in members.shape)
                differences = np.sqrt(rho) * shared @ members + np.sqrt(1 - rho) * own
                found = intervals(differences, members)
                held = [f"{100 * ((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).mean():.1f}" for ends in found]
                widths = ", ".join(f"{np.median(ends[:, 1] - ends[:, 0]):.4f}" for ends in found)
                print(f"| {name} | {clusters} | {rho:g} | {' | '.join(held)} | {widths} |", flush=True)


def intervals(differences: Floats, members: Floats) -> list[Floats]:
    """Return the intervals [sets, 2] of `NAMES` for differences [sets, tasks] and members [clusters, tasks]."""
    by_task = np.stack(student_interval(differences), axis=1)
    percentile = percentile_interval(resampled_means(differences, members, DRAWS))
    return [by_task, percentile, cluster_interval(differences, members)]


def resampled_means(differences: Floats, members: Floats, draws: int) -> Floats:
    """Return the means over tasks [sets, draws] in resamples of whole clusters."""
    sums, sizes = differences @ members.T, members.sum(axis=1)
    parts = [(counts @ sums.T) / (counts @ sizes)[:, None] for counts in bootstrap_counts(len(members), draws)]
    return np.concatenate(parts).T


if __name__ == "__main__":
    guard(main)
