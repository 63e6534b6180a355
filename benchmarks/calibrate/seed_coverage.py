"""Coverage of the intervals of a pair's mean difference over tasks and seeds, and the level of a star.

    python -m benchmarks.calibrate.seed_coverage sets=2000

Five designs; the difference of any two has a part for each task, one for each seed (alike on all tasks) and a rest,
with the standard deviations shown; its true mean is 0. The parts are normal, skewed (1.4), or normal with spreads over
tasks that differ by a factor of ten. Printed: the share of data sets whose 95 % interval of the first pair holds 0, and
the median widths; then, of as many pairs, the share that the signed-rank test over tasks rejects and the share that
gets a star. The two percentile intervals are for comparison. docs/decisions/seeds.md quotes it.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.correction import passes
from analysis.statistics.seeds import paired_by_seed, seed_pairs, two_sided
from analysis.statistics.sign_flip import SEED, bootstrap_counts, percentile_interval
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.arguments import only
from benchmarks.calibrate.null_worlds import DESIGNS, RATIO
from benchmarks.calibrate.tables import coverage_cells, print_row
from cli.errors import guard

NAMES = ("tasks, percentile", "tasks, t", "both, percentile", "model", "model, pooled")
DRAWS = 999
SPREADS = ((0.02, 0.0, 0.01), (0.02, 0.003, 0.01), (0.02, 0.01, 0.01), (0.005, 0.01, 0.005))


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw exponential parts [designs, ...] of mean 0 and variance 1, turned round for every second design.

    So the difference of two neighbours is skewed (1.4).
    """
    turned = (-1.0) ** np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    return np.asarray(turned * (rng.exponential(size=shape) - 1))


def unequal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw normal parts [designs, tasks, seeds] of variance 1 on average, whose spread differs from task to task."""
    spread = np.geomspace(1, RATIO, shape[1])
    return rng.normal(size=shape) * (spread / np.sqrt((spread**2).mean()))[:, None]


Part = Callable[[np.random.Generator, tuple[int, ...]], Floats]
PARTS: dict[str, Part] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": skewed,
    "unequal spread": unequal,
}


def main() -> None:
    """Print one row per (parts, tasks, seeds, spread)."""
    sets, rng = only("sets", 2000), np.random.default_rng(1)
    print_row("parts", "tasks", "seeds", "sd task, seed, rest", *NAMES, "median widths", "rejected, tasks", "star")
    print("|---|---:|---:|---" + "|---:" * len(NAMES) + "|---|---:|---:|")
    for name, tasks, seeds, spread in product(PARTS, (8, 40), (2, 3, 5, 10), SPREADS):
        ends = np.stack([intervals(PARTS[name], tasks, seeds, spread, rng) for _ in range(sets)])
        levels = (f"{100 * share:.1f}" for share in star_levels(PARTS[name], tasks, seeds, spread, pairs=sets, rng=rng))
        print_row(name, tasks, seeds, ", ".join(map(str, spread)), *coverage_cells(ends), *levels)


def star_levels(
    part: Part, tasks: int, seeds: int, spread: tuple[float, ...], *, pairs: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the shares of `pairs` pairs without a difference that the test over tasks rejects, and that get a star.

    Of a pair's two designs the second's seed effect has four times the spread of the first's.
    """
    uneven = np.sqrt(np.where(np.arange(2 * pairs) % 2, 32 / 17, 2 / 17))[:, None, None]
    parts = [part(rng, (2 * pairs, *shape)) for shape in ((tasks, 1), (1, seeds), (tasks, seeds))]
    task, seed, rest = (sd / np.sqrt(2) * one for sd, one in zip(spread, parts, strict=True))
    scores = task + uneven * seed + rest
    rejected = passes(signed_rank((scores[1::2] - scores[::2]).mean(axis=2)).p, 0.05)
    over_both = two_sided(paired_by_seed(scores, np.arange(0, 2 * pairs, 2), np.arange(1, 2 * pairs, 2)))
    return float(rejected.mean()), float((rejected & passes(over_both, 0.05)).mean())


def intervals(part: Part, tasks: int, seeds: int, spread: tuple[float, ...], rng: np.random.Generator) -> Floats:
    """Return the intervals [methods, 2] of the first pair of one data set, in the order of `NAMES`."""
    shapes = ((tasks, 1), (1, seeds), (tasks, seeds))
    parts = zip(spread, shapes, strict=True)
    scores = sum(sd / np.sqrt(2) * part(rng, (DESIGNS, *shape)) for sd, shape in parts)
    pair = seed_pairs(scores, np.array([0]), np.array([1]))
    over_tasks, over_both = (percentile_interval(means) for means in resampled_means(scores[1] - scores[0], DRAWS))
    return np.stack([over_tasks, pair.over_tasks[0], over_both, pair.by_model[0], pair.by_pooled[0]])


def resampled_means(differences: Floats, draws: int) -> tuple[Floats, Floats]:
    """Return the means [draws] of a table [tasks, seeds] over resampled tasks, and over resampled tasks and seeds."""
    tasks, seeds = differences.shape
    per_seed = np.concatenate([counts @ differences / tasks for counts in bootstrap_counts(tasks, draws)])
    weights = np.concatenate(list(bootstrap_counts(seeds, draws, SEED + 1))) / seeds
    return per_seed.mean(axis=1), (per_seed * weights).sum(axis=1)


if __name__ == "__main__":
    guard(main)
