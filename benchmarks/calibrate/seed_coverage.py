"""Coverage of the intervals of a pair's mean difference over tasks and seeds.

    python -m benchmarks.calibrate.seed_coverage sets=2000

Five designs; the difference of any two has a part for each task, one for each seed (alike on all tasks) and a rest,
with the standard deviations shown; its true mean is 0. The parts are normal, skewed (1.4), or normal with spreads over
tasks that differ by a factor of ten. Printed: the share of data sets whose 95 % interval of the first pair holds 0, and
the median widths. The two percentile intervals are for comparison. docs/decisions/seeds.md quotes it.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.seeds import seed_pairs
from analysis.statistics.sign_flip import SEED, bootstrap_counts, percentile_interval
from benchmarks.arguments import only
from benchmarks.calibrate.null_worlds import RATIO
from cli.errors import guard

NAMES = {
    "tasks, percentile": "tasks_percentile",
    "tasks, t": "over_tasks",
    "both, percentile": "both_percentile",
    "model": "by_model",
    "model, pooled": "by_pooled",
}
DESIGNS = 5
DRAWS = 999
SPREADS = ((0.02, 0.0, 0.01), (0.02, 0.003, 0.01), (0.02, 0.01, 0.01), (0.005, 0.01, 0.005))


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw parts of variance 1."""
    return rng.normal(size=shape)


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
PARTS: dict[str, Part] = {"normal": normal, "skewed": skewed, "unequal spread": unequal}


def main() -> None:
    """Print one row per (parts, tasks, seeds, spread)."""
    sets, rng = only("sets", 2000), np.random.default_rng(1)
    print(f"| parts | tasks | seeds | sd task, seed, rest | {' | '.join(NAMES)} | median widths |")
    print("|---|---:|---:|---" + "|---:" * len(NAMES) + "|---|")
    for name, tasks, seeds, spread in product(PARTS, (8, 40), (2, 3, 5, 10), SPREADS):
        covered, width = coverage(PARTS[name], (tasks, seeds), spread, sets, rng)
        rates = " | ".join(f"{100 * rate:.1f}" for rate in covered)
        widths = ", ".join(f"{w:.4f}" for w in width)
        print(f"| {name} | {tasks} | {seeds} | {', '.join(map(str, spread))} | {rates} | {widths} |", flush=True)


def coverage(
    part: Part, size: tuple[int, int], spread: tuple[float, float, float], sets: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the share of intervals that hold 0, and their median widths, in the order of `NAMES`."""
    found = np.empty((sets, len(NAMES), 2))
    tasks, seeds = size
    shapes = ((tasks, 1), (1, seeds), (tasks, seeds))
    for k in range(sets):
        parts = zip(spread, shapes, strict=True)
        scores = sum(sd / np.sqrt(2) * part(rng, (DESIGNS, *shape)) for sd, shape in parts)
        intervals = vars(seed_pairs(scores, np.array([0]), np.array([1])))
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
