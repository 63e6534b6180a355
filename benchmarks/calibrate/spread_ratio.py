"""A machine's spread by a seed's: `python -m benchmarks.calibrate.spread_ratio [sets=600]`

Means of runs [designs, seeds, machines] with planted spreads of seed, machine and rest. In per cent: how often the 95 %
interval of the ratio of both spreads holds it, all designs together. docs/decisions/machines.md has the table. Then of
two recipes with the same seeds, correlated by .5: how often their equal spreads are told apart, by the shape of runs,
and a spread that one halves. docs/decisions/training-recipe.md has it.
"""

from collections.abc import Callable

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.spreads import paired_ratio, pooled, ratio, spread
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

SHAPES = ((1, 3, 3), (1, 10, 3), (7, 3, 2), (7, 3, 3), (7, 5, 4))  # designs, seeds, machines
PAIRED = (6, 10, 20)
Noise = Callable[[np.random.Generator, tuple[int, int, int]], Floats]
NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t(5)": lambda rng, shape: rng.standard_t(5, shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
}
SPREADS = ((1, 0, 0.3), (1, 0.3, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1), (1, 0, 1), (0, 1, 1))  # seed, machine, rest


def held(rng: np.random.Generator, shape: tuple[int, int, int], spreads: tuple[float, float, float]) -> bool:
    """Return whether the interval of one simulated study holds the ratio that its spreads have."""
    designs, seeds, machines = shape
    seed, machine, rest = spreads
    runs = seed * rng.normal(size=(designs, seeds, 1)) + machine * rng.normal(size=(designs, 1, machines))
    runs = runs + rest * rng.normal(size=shape)
    of_machines, of_seeds = (pooled([spread(table) for table in tables]) for tables in (runs, runs.transpose(0, 2, 1)))
    _, low, high = ratio(of_machines, of_seeds)
    return bool(low <= np.hypot(machine, rest) / np.hypot(seed, rest) <= high)


def main() -> None:
    """Print a Markdown table."""
    sets, rng = number_of_sets(600), np.random.default_rng(0)
    print_head("designs", "seeds", "machines", *(f"{s:g}, {m:g}, {r:g}" for s, m, r in SPREADS), texts=0)
    for shape in SHAPES:
        rates = [float(np.mean([held(rng, shape, spreads) for _ in range(sets)])) for spreads in SPREADS]
        print_row(*shape, *per_cent(rates))
    print()
    print_head("seeds", *(f"{name}: told" for name in NOISES), "half the spread: told")
    for seeds in PAIRED:
        shares = [told(rng, seeds, noise, 1.0, sets) for noise in NOISES.values()]
        print_row(seeds, *per_cent([*shares, told(rng, seeds, NOISES["normal"], 0.5, sets)]))


def told(rng: np.random.Generator, seeds: int, noise: Noise, times: float, sets: int) -> float:
    """Return the share of sets whose spreads are told apart; the second's is `times` the first's."""
    common, own = noise(rng, (sets, 1, seeds)), noise(rng, (sets, 2, seeds))
    runs = (common + own) * np.array([[1.0], [times]])
    return float(np.mean([paired_ratio(one, other).p <= 0.05 for one, other in runs]))


if __name__ == "__main__":
    guard(main)
