"""The familywise error of corrections of all pairs: `python -m benchmarks.calibrate.family_level [sets=1000]`

Scores of five designs on n tasks, some of them equally good: how often is any pair of equal designs rejected at .05,
and what share of the pairs that differ by one standard deviation. docs/calibration.md quotes it.
"""

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.correction import holm, passes, shaffer
from analysis.statistics.westfall_young import westfall_young
from analysis.statistics.wilcoxon import signed_rank, signed_ranks
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

NOISES = {
    "normal": lambda rng, n: rng.normal(size=(5, n)),
    "skewed, exchangeable": lambda rng, n: rng.exponential(size=(5, n)) - 1,
    "heavy tails, spreads 1 to 5": lambda rng, n: rng.standard_t(3, size=(5, n)) * np.arange(1, 6)[:, None],
    "task shared, spreads of tasks": lambda rng, n: rng.normal(size=(5, n)) * np.exp(rng.normal(size=n)),
}
# effects of the designs, in standard deviations: which are equal
WORLDS = {
    "all equal": (0, 0, 0, 0, 0),
    "3 + 2": (0, 0, 0, 1, 1),
    "2 + 2 + 1": (0, 0, 1, 1, 2),
    "4, one far": (0, 0, 0, 0, 9),
}
CORRECTIONS = ("Holm", "Shaffer", "Westfall-Young")


def adjusted(differences: Floats) -> Floats:
    """Return the adjusted p [3, pairs] of `CORRECTIONS`."""
    p = signed_rank(differences).p
    return np.stack([holm(p), shaffer(p), westfall_young(p, signed_ranks(differences))])


def main() -> None:
    """Print a Markdown table: in per cent, rejections of any equal pair, and of the pairs that differ."""
    sets = number_of_sets(1000)
    first, second = np.triu_indices(5, 1)
    print_head("n", "noise", "equal designs", *CORRECTIONS, "power", "", "", texts=3)
    for n in (8, 12):
        for kind, noise in NOISES.items():
            for world, effects in WORLDS.items():
                rng, shift = np.random.default_rng(0), np.array(effects, dtype=np.float64)
                equal, rates = shift[first] == shift[second], []
                for _ in range(sets):
                    scores = noise(rng, n) + shift[:, None]
                    told = passes(adjusted(scores[second] - scores[first]), 0.05)
                    rates.append(
                        np.r_[told[:, equal].any(axis=1), told[:, ~equal].mean(axis=1) if shift.any() else [0] * 3]
                    )
                print_row(n, kind, world, *per_cent(np.mean(rates, axis=0)))


if __name__ == "__main__":
    guard(main)
