"""Coverage of the intervals of a pair's mean difference over tasks and seeds, and the level of a star.

    python -m benchmarks.calibrate.seed_coverage sets=2000

Five designs; the difference of any two has a part for each task, one for each seed (alike on all tasks) and a rest,
with the standard deviations shown; its true mean is 0. The parts are normal, skewed (1.4), or normal with spreads over
tasks that differ by a factor of ten. Printed: the share of data sets whose 95 % interval of the first pair holds 0, and
the median widths; the two percentile intervals are for comparison. Then, of as many pairs of two designs, also with
different numbers of seeds, the share that the signed-rank test over tasks rejects and the share that gets a star,
paired by seed and unpaired. Last, shares of `analysis.aa` over sets / 50 studies of ten runs of one design: their mean
and their standard deviation. docs/decisions/seeds.md quotes it.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd

from analysis.questions.same_design import SHARES, same_design
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from analysis.statistics.correction import passes
from analysis.statistics.seeds import compare_runs, seed_pairs, two_sided
from analysis.statistics.sign_flip import SEED, bootstrap_counts, percentile_interval
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.null_worlds import DESIGNS, RATIO
from benchmarks.calibrate.tables import coverage_cells, per_cent, print_head, print_row
from cli.errors import guard

NAMES = ("tasks, percentile", "tasks, t", "both, percentile", "model", "model, pooled")
DRAWS = 999
SPREADS = ((0.02, 0.0, 0.01), (0.02, 0.003, 0.01), (0.02, 0.01, 0.01), (0.005, 0.01, 0.005))
SIZES = ((3, 3), (5, 5), (10, 10), (3, 5), (5, 3), (3, 10), (10, 3))  # runs of the two designs
STRAYS = 4.0  # spread over seeds of the second design, that of the first being 1
ONE_DESIGN = ((0.0, 0.0, 0.01), (0.0, 0.005, 0.01), (0.0, 0.02, 0.01))  # two runs of it differ by these


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
Spread = tuple[float, float, float]
PARTS: dict[str, Part] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": skewed,
    "unequal spread": unequal,
}


def main() -> None:
    """Print the three tables."""
    sets, rng = number_of_sets(2000), np.random.default_rng(1)
    names = ("parts", "tasks", "seeds", "sd task, seed, rest")
    print_head(*names, *NAMES, "median widths", texts=4)
    for name, tasks, seeds, spread in product(PARTS, (8, 40), (2, 3, 5, 10), SPREADS):
        ends = np.stack([intervals(PARTS[name], tasks, seeds, spread, rng) for _ in range(sets)])
        print_row(name, tasks, seeds, ", ".join(map(str, spread)), *coverage_cells(ends))
    print()
    print_head(*names, "rejected over tasks", "star, paired", "star, unpaired", texts=4)
    for name, tasks, sizes, spread in product(PARTS, (8, 40), SIZES, SPREADS):
        levels = star_levels(PARTS[name], tasks, sizes, spread, pairs=sets, rng=rng)
        print_row(name, tasks, "{} and {}".format(*sizes), ", ".join(map(str, spread)), *per_cent(levels))
    print()
    print_head("parts", "sd task, seed, rest", "runs per side", *SHARES, texts=3)
    for name, spread in product(PARTS, ONE_DESIGN):
        for sides, shares in shares_of_ten_runs(PARTS[name], spread, studies=-(-sets // 50), rng=rng).items():
            print_row(name, ", ".join(map(str, spread)), "{} and {}".format(*sides), *shares)


def star_levels(
    part: Part, tasks: int, sizes: tuple[int, int], spread: Spread, *, pairs: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the shares of `pairs` pairs without a difference that the test over tasks rejects, and that get a star.

    sizes: runs of the two designs. The star is given by seed, which takes as many of both (else nan), and unpaired.
    """
    uneven = np.sqrt(2 / (1 + STRAYS**2)) * np.array([1, STRAYS])
    shapes = ((tasks, 1), (1, max(sizes)), (tasks, max(sizes)))
    task, seed, rest = (
        sd / np.sqrt(2) * part(rng, (2 * pairs, *shape)) for sd, shape in zip(spread, shapes, strict=True)
    )
    scores = task + np.tile(uneven, pairs)[:, None, None] * seed + rest
    one, other = scores[::2, :, : sizes[0]], scores[1::2, :, : sizes[1]]
    rejected = passes(signed_rank(other.mean(axis=2) - one.mean(axis=2)).p, 0.05)

    def star(paired: bool) -> float:
        return float((rejected & passes(two_sided(compare_runs(one, other, paired)), 0.05)).mean())

    return float(rejected.mean()), star(paired=True) if sizes[0] == sizes[1] else float("nan"), star(paired=False)


def shares_of_ten_runs(
    part: Part, spread: Spread, *, studies: int, rng: np.random.Generator
) -> dict[tuple[int, int], list[str]]:
    """Return, by runs per side, mean and standard deviation over studies of each share of `analysis.aa`, per cent.

    spread: of the difference of two runs, 40 tasks.
    """
    tasks, shares = [f"t{k}" for k in range(40)], defaultdict[tuple[int, int], list[Floats]](list)
    for _ in range(studies):
        parts = zip(spread, ((40, 1), (1, 10), (40, 10)), strict=True)
        scores = sum(sd / np.sqrt(2) * part(rng, (1, *shape))[0] for sd, shape in parts)
        place = pd.MultiIndex.from_product([["design"], tasks, map(str, range(10))], names=["design", "task", "seed"])
        frame = pd.DataFrame({"score": scores.ravel()}, index=place).reset_index()
        table = same_design(frame, ["design"], tasks, Settings(scores=()))
        for row in table[table["design"] == "design"].to_dict("records"):
            shares[row["side"], row["other_side"]].append(100 * np.array([row[name] for name in SHARES]))
    return {
        sides: [f"{mean:.1f} ({sd:.1f})" for mean, sd in zip(np.mean(of, axis=0), np.std(of, axis=0), strict=True)]
        for sides, of in shares.items()
    }


def intervals(part: Part, tasks: int, seeds: int, spread: Spread, rng: np.random.Generator) -> Floats:
    """Return the intervals [methods, 2] of the first pair of one data set, in the order of `NAMES`."""
    shapes = ((tasks, 1), (1, seeds), (tasks, seeds))
    parts = zip(spread, shapes, strict=True)
    scores = sum(sd / np.sqrt(2) * part(rng, (DESIGNS, *shape)) for sd, shape in parts)
    pair = seed_pairs(scores, np.array([0]), np.array([1]))
    over_tasks, over_both = (percentile_interval(means) for means in resampled_means(scores[1] - scores[0], DRAWS))
    return np.stack([over_tasks, pair.over_tasks[0], over_both, pair.by_model[0], pair.by_pooled[0]])


def resampled_means(differences: Floats, draws: int) -> tuple[Floats, Floats]:
    """Return the means [draws] of a table [tasks, seeds] over resampled tasks, and over resampled tasks and seeds."""
    tasks, seeds = differences.shape
    per_seed = np.concatenate([counts @ differences / tasks for counts in bootstrap_counts(tasks, draws)])
    weights = np.concatenate(list(bootstrap_counts(seeds, draws, SEED + 1))) / seeds
    return per_seed.mean(axis=1), (per_seed * weights).sum(axis=1)


if __name__ == "__main__":
    guard(main)
