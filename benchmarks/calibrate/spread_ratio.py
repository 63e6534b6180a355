"""A machine's spread by a seed's: `python -m benchmarks.calibrate.spread_ratio [sets=600]`

Means of runs [designs, seeds, machines] with planted spreads of seed, machine and rest. In per cent: how often the 95 %
interval of the ratio of both spreads holds it, all designs together. docs/decisions/machines.md has the table.
"""

import numpy as np

from analysis.statistics.spreads import pooled, ratio, spread
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

SHAPES = ((1, 3, 3), (1, 10, 3), (7, 3, 2), (7, 3, 3), (7, 5, 4))  # designs, seeds, machines
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


if __name__ == "__main__":
    guard(main)
