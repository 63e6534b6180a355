"""Coverage of the intervals of strengths and of the ranks: `python -m benchmarks.calibrate.rank_coverage [sets=1000]`

Scores of five designs on n tasks. The true strengths are those of 200,000 tasks of the same kind; counted are the
intervals that hold theirs, and the rank sets that hold a design's rank (of equal designs: every rank that they share).
docs/calibration.md quotes it.
"""

from collections.abc import Sequence

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.bradley_terry import strengths
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

TRUTH = 200_000
WORLDS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "all equal": ([0, 0, 0, 0, 0], [1, 1, 1, 1, 1]),
    "steps of .3 SD": ([0, 0.3, 0.6, 0.9, 1.2], [1, 1, 1, 1, 1]),
    "two equal, spreads 1 to 3": ([0, 0, 0.5, 1, 1], [1, 3, 1, 2, 1]),
    "one far behind": ([0, 4, 4, 4.2, 4.4], [1, 1, 1, 1, 1]),
}


def drawn(rng: np.random.Generator, n: int, effects: Sequence[float], spreads: Sequence[float]) -> Floats:
    """Draw [n, 5]: designs 0 and 1 share half of their variance, as two readings of one base do."""
    noise = rng.normal(size=(n, 5))
    noise[:, 1] = (noise[:, 0] + noise[:, 1]) / np.sqrt(2)
    return np.asarray(noise * np.array(spreads) + np.array(effects))


def main() -> None:
    """Print a Markdown table: coverage of intervals and of ranks in per cent, and how many ranks a set holds."""
    sets = number_of_sets(1000)
    print_head("designs", "n", "strength held", "rank held", "ranks in a set")
    for world, (effects, spreads) in WORLDS.items():
        large = strengths(drawn(np.random.default_rng(1), TRUTH, effects, spreads))
        equal = np.array([[abs(a - b) < 0.02 for b in large.strength] for a in large.strength])
        best = np.array([1 + (large.strength[~row] > s).sum() for row, s in zip(equal, large.strength, strict=True)])
        worst = best + equal.sum(axis=1) - 1
        for n in (8, 20, 40):
            rng, rates = np.random.default_rng(n), []
            for _ in range(sets):
                fit = strengths(drawn(rng, n, effects, spreads))
                covered = (fit.low <= large.strength) & (large.strength <= fit.high)
                ranked = (fit.rank_low <= best) & (worst <= fit.rank_high)
                rates.append([covered.mean(), ranked.mean(), (fit.rank_high - fit.rank_low + 1).mean() / 100])
            print_row(world, n, *per_cent(np.mean(rates, axis=0)))


if __name__ == "__main__":
    guard(main)
