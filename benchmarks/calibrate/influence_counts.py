"""Number of tasks that carry a significant difference: `python -m benchmarks.calibrate.influence_counts [sets=1000]`

Pairs over 40 tasks whose signed-rank test passes at .05: how many of the tasks with the largest differences in its
favour must go until it does not, by the effect that the pair really has. docs/calibration.md quotes it.
"""

from functools import partial

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.influence import carriers
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

TASKS, MOST = 40, 10


def turned(differences: Floats, places: list[int]) -> bool:
    """Tell whether the test of [n] does not pass without these places."""
    return bool(signed_rank(np.delete(differences, places)[None]).p[0] > 0.05)


def main() -> None:
    """Print a Markdown table: power, and of the significant pairs the shares that rest on so few tasks, in per cent."""
    sets = number_of_sets(1000)
    print_head("effect, SD", "significant", "1 task", "up to 3", f"up to {MOST}", texts=0)
    for effect in (0.0, 0.3, 0.5, 0.7, 1.0):
        rng, counts = np.random.default_rng(0), []
        for _ in range(sets):
            d = rng.normal(effect, 1, TASKS)
            test = signed_rank(d[None])
            if test.p[0] > 0.05:
                continue
            side = float(np.sign(test.w_plus - test.w_minus)[0])
            counts.append(len(carriers(d, side, partial(turned, d), MOST)) or MOST + 1)
        shares = [100 * np.mean(np.array(counts) <= most) for most in (1, 3, MOST)]
        print_row(effect, *per_cent([len(counts) / sets]), *(f"{share:.0f}" for share in shares))


if __name__ == "__main__":
    guard(main)
