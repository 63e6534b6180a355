"""How often any of several equal pairs is told of designs, with the spreads of runs at hand: six pairs, and all 21.

    python -m benchmarks.calibrate.seed_family docs/tables/ten_seeds.csv.gz [sets=1000]

Designs without a difference over as many tasks as the file has. Task, seed and rest have the spreads of its runs:
*own*: each design its own spread over seeds; *alike*: all the same one; *resampled*: each design's own run means,
drawn again, instead of normal ones; *stray*: as alike, one design with four times the spread; *loud*: a seed moves
every pair by half as much as a task does; *skewed*: as loud, with exponential seeds, to the other side for every second
design. *program*: p over tasks and seeds as tables have it; *own seeds*: with the pair's own mean square of seeds
alone, as until 2026-11-25; *stricter*: with that mean square as uncertain as so few seeds leave it (Behrens 1929,
Fisher 1935), see `stricter`. Told .02: of the first design that is so much ahead of the one that six are compared
with. docs/decisions/seeds.md quotes it.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import stdtr
from scipy.stats import chi2

from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.correction import holm
from analysis.statistics.seed_errors import table_mean_squares
from analysis.statistics.seeds import over_tasks_and_seeds, two_sided
from analysis.statistics.variance import REST, components
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.arguments import folder_first, taken_out
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

WORLDS, SEEDS, AHEAD, ALPHA = ("own", "alike", "resampled", "stray", "loud", "skewed"), (3, 5, 10), 0.02, 0.05
STRAYS = 4  # of the last design, times the spread of the others
LOUD = 0.5  # of a task's spread
EDGES = np.concatenate([np.geomspace(1e-6, 0.01, 61), np.linspace(0.01, 1, 401)[1:]])  # of the seeds' chance


def main() -> None:
    """Print a Markdown table, all in per cent."""
    path = folder_first("docs/tables/ten_seeds.csv.gz", or_file=True)
    sets, _ = taken_out(sys.argv[1:], "sets", 1000)
    scores = read_runs(path)
    first, second = np.triu_indices(len(scores), k=1)
    of_one = first == 0
    columns = ("one pair", f"any of {of_one.sum()}", f"any of {len(first)}", f"told {AHEAD:g}")
    print_head("world", "seeds", *(f"{column}: {rule}" for column in columns for rule in RULES))
    for world, seeds in product(WORLDS, SEEDS):
        rng, counts = np.random.default_rng(1), np.zeros((len(columns), len(RULES)))
        for _ in range(sets):
            equal = drawn(scores, world, seeds, rng)
            moved = equal + AHEAD * (np.arange(len(equal)) == 1)[:, None, None]
            for k, rule in enumerate(RULES.values()):
                of_tasks, of_seeds = rule(equal, first, second)
                ahead = [_passes(holm(p))[0] for p in rule(moved, first[of_one], second[of_one])]
                alone = _passes(of_tasks) & _passes(of_seeds)
                six = _passes(holm(of_tasks[of_one])) & _passes(holm(of_seeds[of_one]))
                whole = _passes(holm(of_tasks)) & _passes(holm(of_seeds))
                counts[:, k] += [float(alone.mean()), float(six.any()), float(whole.any()), float(all(ahead))]
        print_row(world, seeds, *per_cent((counts / sets).ravel()))
    _print_spreads(scores, first, second)


def _print_spreads(scores: Floats, first: Ints, second: Ints) -> None:
    """Print how far task and seed move the difference of a pair, with and without the design that varies most."""
    differences = scores[second] - scores[first]
    _, tasks, seeds = differences.shape
    of_task, of_seed, rest = table_mean_squares(differences)
    task, seed = (np.sqrt(np.maximum(part, 0.0)) for part in ((of_task - rest) / seeds, (of_seed - rest) / tasks))
    loudest = scores.mean(axis=1).var(axis=1).argmax()
    with_it = (first == loudest) | (second == loudest)
    for words, kept in (("without the design that varies most", ~with_it), ("with it", with_it)):
        ranges = (f"{part[kept].min():.3f} to {part[kept].max():.3f}" for part in (seed, task))
        share = (seed / task)[kept]
        print("\nPairs {}: seed {}, task {},".format(words, *ranges), f"ratio {share.min():.1f} to {share.max():.1f}")


def _passes(p: Floats) -> Bools:
    return p <= ALPHA


def read_runs(path: Path) -> Floats:
    """Return the scores [designs, tasks, seeds] of a csv with the columns model, seed, task and score."""
    table = pd.read_csv(path).pivot_table(index=["model", "task"], columns="seed", values="score")
    return table.to_numpy().reshape(table.index.get_level_values("model").nunique(), -1, table.shape[1])


def drawn(scores: Floats, world: str, seeds: int, rng: np.random.Generator) -> Floats:
    """Return [designs, tasks, seeds] without a difference between designs, with the spreads of `scores`."""
    designs, tasks, _ = scores.shape
    parts = components(scores)
    task, rest = (np.sqrt(parts[name].variance) for name in ("design x task", REST))
    means = scores.mean(axis=1)
    own = np.sqrt(np.maximum(means.var(axis=1, ddof=1) - rest**2 / tasks, 0.0))[:, None, None]
    if world == "resampled":
        apart = means - means.mean(axis=1, keepdims=True)
        apart = apart * own[:, 0] / means.std(axis=1, ddof=1, keepdims=True)  # the rest comes on top
        of_seed = np.stack([rng.choice(of_design, seeds) for of_design in apart])[:, None, :]
    elif world in ("loud", "skewed"):
        side = np.where(np.arange(designs) % 2, -1, 1)[:, None, None]  # two tails to one side would cancel in a pair
        skewed = side * (rng.exponential(size=(designs, 1, seeds)) - 1)  # an exponential's mean and spread are 1
        of_seed = LOUD * task * (skewed if world == "skewed" else rng.normal(size=(designs, 1, seeds)))
    else:
        spread = own if world == "own" else np.full_like(own, np.sqrt((own**2).mean()))
        strays = np.where(np.arange(designs) == designs - 1, STRAYS if world == "stray" else 1, 1)[:, None, None]
        of_seed = spread * strays * rng.normal(size=(designs, 1, seeds))
    of_task, left = rng.normal(0, task, (designs, tasks, 1)), rng.normal(0, rest, (designs, tasks, seeds))
    return np.asarray(of_task + of_seed + left)


def program(cube: Floats, first: Ints, second: Ints, alone: bool = False) -> tuple[Floats, Floats]:
    """Return p over tasks, and over tasks and seeds, of each pair; 1 where they are of two sides."""
    means, seeds = cube.mean(axis=2), over_tasks_and_seeds(cube, first, second, alone)
    test = signed_rank(means[second] - means[first])
    same_side = np.sign(test.w_plus - test.w_minus) == np.sign(seeds.mean_seeds)
    return np.where(same_side, test.p, 1.0), two_sided(seeds)


def stricter(cube: Floats, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the same, the second by Behrens and Fisher instead of Satterthwaite.

    The squared error is tasks + seeds - rest. Its part of the seeds is known from S - 1 degrees of freedom: given the
    mean square, the true one is that times (S - 1) / chi-square. Student's p of the tasks' part, averaged over it.
    """
    differences = cube[second] - cube[first]
    _, tasks, seeds = differences.shape
    of_task, of_seed, rest = table_mean_squares(differences)[:, :, None] / (tasks * seeds)
    chances = (EDGES[1:] + EDGES[:-1]) / 2
    of_seed = of_seed * (seeds - 1) / chi2.ppf(chances, seeds - 1)
    squared = np.maximum(of_task + of_seed - rest, np.maximum(of_task, of_seed))
    distance = np.abs(differences.mean(axis=(1, 2)))[:, None] / np.sqrt(squared)
    p = 2 * stdtr((tasks - 1) * (squared / of_task) ** 2, -distance) @ np.diff(EDGES)
    return program(cube, first, second)[0], p + EDGES[0]


RULES: dict[str, Callable[[Floats, Ints, Ints], tuple[Floats, Floats]]] = {
    "own seeds": partial(program, alone=True),
    "program": program,
    "stricter": stricter,
}

if __name__ == "__main__":
    guard(main)
