"""The test of the mean over types and its interval: `python -m benchmarks.calibrate.type_mean_level [sets=1500]`

Pairs whose mean over five types is zero: how often the flips reject at .05, and the 95 % interval holds it.
docs/calibration.md quotes it.
"""

from itertools import product

import numpy as np

from analysis.statistics.cross_checks import RESAMPLED_PAIRS
from analysis.statistics.stratified import stratified
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

SIZES = {"8 each": [8] * 5, "2 to 20": [2, 3, 5, 10, 20]}
NOISES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "Student's t, 3 degrees of freedom": lambda rng, shape: rng.standard_t(3, size=shape),
}
SPREADS = {"alike": np.ones(5), "1 to 5": np.arange(5.0, 0, -1)}
EFFECTS = {"none": np.zeros(5), "types cancel": np.array([2.0, -1, 0, 1, -2])}


def main() -> None:
    """Print a Markdown table, in per cent."""
    sets = number_of_sets(1500)
    print_head("tasks", "noise", "spread of types", "effects", "rejected", "held", texts=4)
    cells = product(SIZES.items(), NOISES.items(), SPREADS.items(), EFFECTS.items())
    for seed, ((tasks, sizes), (kind, noise), (spread, scale), (which, effect)) in enumerate(cells):
        rng, rates, kinds = np.random.default_rng(seed), [], np.repeat(np.arange(5), sizes)
        strata = [np.flatnonzero(kinds == k) for k in range(5)]
        for _ in range(-(-sets // RESAMPLED_PAIRS)):
            d = noise(rng, (RESAMPLED_PAIRS, len(kinds))) * scale[kinds] + effect[kinds]
            estimates = stratified(d, strata, np.ones(5))
            rates.append([(estimates.flips.p <= 0.05).mean(), ((estimates.low <= 0) & (estimates.high >= 0)).mean()])
        print_row(tasks, kind, spread, which, *per_cent(np.mean(rates, axis=0)))


if __name__ == "__main__":
    guard(main)
