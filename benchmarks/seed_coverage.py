"""How often the intervals of a pair's mean difference over tasks and seeds hold the truth.

    python -m benchmarks.seed_coverage sets=2000

Five designs; the difference of any two has a part for each task, one for each seed (alike on all tasks) and a rest, all
normal with the standard deviations shown; its true mean is 0. Printed: the share of data sets whose 95 % interval of
the first pair holds 0, and the median widths. The two percentile intervals are those that analysis had before it took
the bootstrap-t. docs/decisions/seeds.md quotes it.
"""

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.resample import SEED, bootstrap_counts, percentile_interval
from analysis.statistics.seed_pairs import seed_pairs
from benchmarks.arguments import only
from records.errors import guard

Floats = NDArray[np.float64]

NAMES = {
    "tasks, percentile": "tasks_percentile",
    "tasks, bootstrap-t": "over_tasks",
    "both, percentile": "both_percentile",
    "both, bootstrap-t": "over_tasks_and_seeds",
    "model": "by_model",
    "model, pooled": "by_pooled",
}
DESIGNS = 5
DRAWS = 999
SPREADS = ((0.02, 0.0, 0.01), (0.02, 0.003, 0.01), (0.02, 0.01, 0.01), (0.005, 0.01, 0.005))


def main() -> None:
    """Print one row a (tasks, seeds, spread)."""
    sets, rng = only("sets", 2000), np.random.default_rng(1)
    print(f"| tasks | seeds | sd task, seed, rest | {' | '.join(NAMES)} | median widths |")
    print("|---:|---:|---" + "|---:" * len(NAMES) + "|---|")
    for tasks in (8, 40):
        for seeds in (2, 3, 5, 10):
            for spread in SPREADS:
                covered, width = coverage(tasks, seeds, spread, sets, rng)
                rates = " | ".join(f"{100 * rate:.1f}" for rate in covered)
                widths = ", ".join(f"{w:.4f}" for w in width)
                print(f"| {tasks} | {seeds} | {', '.join(map(str, spread))} | {rates} | {widths} |", flush=True)


def coverage(
    tasks: int, seeds: int, spread: tuple[float, float, float], sets: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the share of intervals that hold 0, and their median widths, in the order of `NAMES`."""
    found = np.empty((sets, len(NAMES), 2))
    shapes = ((tasks, 1), (1, seeds), (tasks, seeds))
    for k in range(sets):
        parts = zip(spread, shapes, strict=True)
        scores = sum(sd / np.sqrt(2) * rng.normal(size=(DESIGNS, *shape)) for sd, shape in parts)
        intervals = vars(seed_pairs(scores, np.array([0]), np.array([1]), draws=DRAWS))
        over_tasks, over_both = (percentile_interval(means) for means in resampled_means(scores[1] - scores[0], DRAWS))
        intervals |= {"tasks_percentile": [over_tasks], "both_percentile": [over_both]}
        found[k] = [intervals[name][0] for name in NAMES.values()]
    held = (found[..., 0] <= 0) & (found[..., 1] >= 0)
    return held.mean(axis=0), np.median(found[..., 1] - found[..., 0], axis=0)


def resampled_means(differences: Floats, draws: int) -> tuple[Floats, Floats]:
    """Return the means [draws] of a table [tasks, seeds] over resampled tasks, and over resampled tasks and seeds."""
    tasks, seeds = differences.shape
    per_seed = np.concatenate([counts @ differences / tasks for counts in bootstrap_counts(tasks, draws)])
    weights = np.concatenate(list(bootstrap_counts(seeds, draws, SEED + 1))) / seeds
    return per_seed.mean(axis=1), (per_seed * weights).sum(axis=1)


if __name__ == "__main__":
    guard(main)
