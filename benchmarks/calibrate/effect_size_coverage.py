"""The intervals of effect sizes: `python -m benchmarks.calibrate.effect_size_coverage [sets=2000]`

How often the 95 % intervals of d_z and of the rank-biserial correlation hold what they estimate: mean over standard
deviation of the world, and the statistic's own expectation. docs/calibration.md quotes it.
"""

from itertools import product

import numpy as np

from analysis.statistics.effect_sizes import effect_sizes
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

NOISES = {  # of standard deviation 1
    "normal": lambda rng, shape: rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "Student's t, 5 degrees of freedom": lambda rng, shape: rng.standard_t(5, size=shape) / (5 / 3) ** 0.5,
}
SHIFTS = (0.0, 0.5, 1.5)


def main() -> None:
    """Print a Markdown table, in per cent."""
    sets = number_of_sets(2000)
    print_head("differences", "n", "shift, SD", "d_z held", "r held")
    for seed, (kind, n, shift) in enumerate(product(NOISES, (8, 20, 40, 56), SHIFTS)):
        d = shift + NOISES[kind](np.random.default_rng(seed), (sets, n))
        test = signed_rank(d)
        effects, r = effect_sizes(d, test), test.rank_biserial.mean()
        covered = [
            (effects[f"{name}_low"] <= value) & (value <= effects[f"{name}_high"])
            for name, value in (("d_z", shift), ("rank_biserial", r))
        ]
        print_row(kind, n, f"{shift:g}", *per_cent(one.mean() for one in covered))


if __name__ == "__main__":
    guard(main)
