"""Coverage of the intervals of a mean over tasks that come in clusters.

    python -m benchmarks.calibrate.cluster_coverage sets=4000

Tasks of one cluster share a part of their difference (correlation rho). Shared and own parts are drawn from the
differences of the embedded study as `benchmarks.calibrate.null_worlds` draws them, from an exponential (skewness 2), or
normal with spreads that differ by a factor of ten; the true mean is 0. Printed: the share of 95 % intervals that hold
0, and the median widths. The percentile interval is for comparison. docs/decisions/clusters.md quotes it.
"""

from itertools import product

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.clusters import cluster_interval
from analysis.statistics.intervals import student_interval
from analysis.statistics.sign_flip import bootstrap_counts, percentile_interval
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.null_worlds import WORLDS, read_spreads
from benchmarks.calibrate.tables import coverage_cells, print_head, print_row
from cli.errors import guard

KINDS = {"embedded study": "real, as they are", "skewness 2": "skewed, mean 0", "unequal spread": "unequal spread"}
SIZES = {
    "6 x 5": [5] * 6,
    "8 x 5": [5] * 8,
    "8 of 1 to 12": [1, 1, 2, 3, 5, 7, 9, 12],
    "20 x 2": [2] * 20,
    "12 of 1 to 8": [1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7, 8],
}
DRAWS = 999


def main() -> None:
    """Print one row per (differences, clusters, rho)."""
    sets, spreads = number_of_sets(4000), read_spreads(None)
    columns = ("rho", "tasks, t", "clusters, percentile", "clusters, t", "median widths")
    print_head("differences", "clusters", *columns, texts=2)
    for kind, clusters, rho in product(KINDS, SIZES, (0.0, 0.3, 0.6)):
        rng = np.random.default_rng(0)
        members = np.repeat(np.eye(len(SIZES[clusters])), SIZES[clusters], axis=1)
        by_cluster, by_task = (WORLDS[KINDS[kind]](rng, spreads, sets, n) for n in members.shape)
        differences = np.sqrt(rho) * by_cluster @ members + np.sqrt(1 - rho) * by_task
        resampled = percentile_interval(resampled_means(differences, members, DRAWS))
        student = np.stack(student_interval(differences), axis=1)
        ends = np.stack([student, resampled, cluster_interval(differences, members)], axis=1)
        print_row(kind, clusters, f"{rho:g}", *coverage_cells(ends))


def resampled_means(differences: Floats, members: Floats, draws: int) -> Floats:
    """Return the means over tasks [sets, draws] in resamples of whole clusters."""
    sums, sizes = differences @ members.T, members.sum(axis=1)
    parts = [(counts @ sums.T) / (counts @ sizes)[:, None] for counts in bootstrap_counts(len(members), draws)]
    return np.concatenate(parts).T


if __name__ == "__main__":
    guard(main)
