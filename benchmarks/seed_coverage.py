"""How often the intervals of a pair's mean difference over tasks and seeds hold the truth.

    python -m benchmarks.seed_coverage sets=2000

Five designs; the difference of any two has a part for each task, one for each seed (alike on all tasks) and a rest, all
normal with the standard deviations shown; its true mean is 0. Printed: the share of data sets whose 95 % interval of
the first pair holds 0, and the mean widths.
"""

import numpy as np

from analysis.statistics.seed_pairs import seed_pairs
from benchmarks.arguments import only
from records.errors import guard

NAMES = ("over_tasks", "over_tasks_and_seeds", "by_model", "by_pooled")
DESIGNS = 5
SPREADS = ((0.02, 0.0, 0.01), (0.02, 0.003, 0.01), (0.02, 0.01, 0.01), (0.005, 0.01, 0.005))


def main() -> None:
    """Print one row a (tasks, seeds, spread)."""
    sets = only("sets", 2000)
    rng = np.random.default_rng(1)
    print("| tasks | seeds | sd task, seed, rest | tasks | tasks and seeds | model | model, pooled | mean widths |")
    print("|---:|---:|---|---:|---:|---:|---:|---|")
    for tasks in (8, 40):
        for seeds in (2, 3, 5, 10):
            for spread in SPREADS:
                covered, width = coverage(tasks, seeds, spread, sets, rng)
                rates = " | ".join(f"{100 * rate:.1f}" for rate in covered)
                widths = ", ".join(f"{w:.4f}" for w in width)
                print(f"| {tasks} | {seeds} | {', '.join(map(str, spread))} | {rates} | {widths} |", flush=True)


def coverage(
    tasks: int, seeds: int, spread: tuple[float, float, float], sets: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of intervals that hold 0, and their mean widths, in the order of `NAMES`."""
    held, width = np.zeros(len(NAMES)), np.zeros(len(NAMES))
    shapes = ((tasks, 1), (1, seeds), (tasks, seeds))
    for _ in range(sets):
        parts = zip(spread, shapes, strict=True)
        scores = sum(sd / np.sqrt(2) * rng.normal(size=(DESIGNS, *shape)) for sd, shape in parts)
        found = seed_pairs(scores, np.array([0]), np.array([1]), draws=999)
        for k, name in enumerate(NAMES):
            low, high = getattr(found, name)[0]
            held[k] += low <= 0 <= high
            width[k] += high - low
    return held / sets, width / sets


if __name__ == "__main__":
    guard(main)
