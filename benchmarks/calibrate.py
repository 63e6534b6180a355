"""Levels of the tests and coverage of the intervals of `analysis`, by simulation of designs that are equally good.

    python -m benchmarks.calibrate                                       # all tables
    python -m benchmarks.calibrate tables=tasks,seeds sets=2000          # some, with so many data sets of each kind
    python -m benchmarks.calibrate scores=results/ten/scores.csv.gz      # with the spreads of runs at hand

A score is a mean + task + seed + rest, all random; printed, in per cent, is how often a test rejects at .05 although
nothing differs, and how often a 95 % interval holds the true difference, 0. A rate of r has a standard error of
sqrt(r (1 - r) / sets). scores: a csv with the columns model, seed, task and score.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.contrasts import effect_contrasts, helmert
from analysis.statistics.correction import holm
from analysis.statistics.interaction import effect_over_seeds, over_seeds, permuted
from analysis.statistics.intervals import hodges_lehmann, student_interval
from analysis.statistics.seed_errors import contrast_spread
from analysis.statistics.seeds import (
    SeedMeans,
    compare_runs,
    over_tasks_and_seeds,
    reach_of_seeds,
    two_sided,
)
from analysis.statistics.sign_flip import sign_flip
from analysis.statistics.wilcoxon import signed_rank
from cli.errors import UserError, guard, nearest

ALPHA, LEVEL = 0.05, 0.95
DESIGNS = 5
STRAYS = 4.0  # spread over seeds of one design, those of the others being 1
UNEVEN = 10.0  # spread over tasks of the last task, that of the first being 1
Part = Callable[[np.random.Generator, tuple[int, ...]], Floats]  # draws [designs, tasks, seeds]; variance 1
Spread = tuple[float, float, float]  # standard deviation of a difference: of task, of seed, of the rest
SPREADS: tuple[Spread, ...] = ((0.02, 0.0, 0.01), (0.02, 0.003, 0.01), (0.02, 0.01, 0.01), (0.005, 0.01, 0.005))
Row = dict[str, Any]


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw exponential parts, turned round for every second design, so that a difference of neighbours is skewed."""
    turned = (-1.0) ** np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    return np.asarray(turned * (rng.exponential(size=shape) - 1))


def unequal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw normal parts whose spread differs from task to task."""
    spread = np.geomspace(1, UNEVEN, shape[1])
    return rng.normal(size=shape) * (spread / np.sqrt((spread**2).mean()))[:, None]


PARTS: dict[str, Part] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape) / np.sqrt(3),
    "skewed": skewed,
    "unequal spread": unequal,
}


def main() -> None:
    """Print the tables that the words ask for."""
    keys = {"tables": ",".join(TABLES), "sets": "400", "scores": ""}
    for word in sys.argv[1:]:
        key, equals, value = word.partition("=")
        if key not in keys or not equals:
            raise UserError(f"There is no key '{key}'. {nearest(key, keys)}")
        keys[key] = value
    if not keys["sets"].isdigit() or int(keys["sets"]) < 1:
        raise UserError(f"sets={keys['sets']} must be a whole number above 0.")
    own = {"of these runs": spread_of(Path(keys["scores"]))} if keys["scores"] else {}
    spreads = {", ".join(map(str, spread)): spread for spread in SPREADS} | own
    for name in keys["tables"].split(","):
        if name not in TABLES:
            raise UserError(f"There is no table '{name}'. {nearest(name, TABLES)}")
        title = (TABLES[name].__doc__ or "").splitlines()[0].removeprefix("Yield ")
        print(f"\n{name}: {title}\n")
        print(table(TABLES[name](spreads, int(keys["sets"]))), flush=True)


def table(rows: Iterator[Row]) -> str:
    """Return rows as Markdown, shares in per cent."""
    frame = pd.DataFrame(rows)
    words = [[f"{100 * x:.1f}" if isinstance(x, float) else str(x) for x in row] for row in frame.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(frame), ["---"] * len(frame.columns), *words])


def spread_of(path: Path) -> Spread:
    """Return the standard deviations of a pair's difference in a csv of runs: of task, of seed and of the rest.

    By the mean squares of design x task, design x seed and the rest. Raises `UserError` for a file that is none.
    """
    try:
        wide = pd.read_csv(path).pivot_table(index=["model", "task"], columns="seed", values="score").dropna(axis=1)
        cube = wide.to_numpy().reshape(wide.index.get_level_values("model").nunique(), -1, wide.shape[1])
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is no csv with model, seed, task and score ({error}).") from error
    designs, tasks, seeds = cube.shape
    apart = cube - cube.mean(axis=0)
    of_task, of_seed = (apart.mean(axis=axis) for axis in (2, 1))
    of_task, of_seed = of_task - of_task.mean(axis=1)[:, None], of_seed - of_seed.mean(axis=1)[:, None]
    left = apart - apart.mean(axis=(1, 2), keepdims=True) - of_task[:, :, None] - of_seed[:, None]
    free = (designs - 1) * np.array([tasks - 1, seeds - 1, (tasks - 1) * (seeds - 1)])
    squares = np.array([seeds * (of_task**2).sum(), tasks * (of_seed**2).sum(), (left**2).sum()]) / free
    variances = np.maximum([(squares[0] - squares[2]) / seeds, (squares[1] - squares[2]) / tasks, squares[2]], 0)
    task, seed, rest = np.sqrt(2 * variances).tolist()
    return task, seed, rest


def drawn(part: Part, spread: Spread, shape: tuple[int, int, int], rng: np.random.Generator) -> Floats:
    """Return scores [designs, tasks, seeds] without a difference; the last design strays in how it varies by seed."""
    designs, tasks, seeds = shape
    strays = np.where(np.arange(designs) == designs - 1, STRAYS, 1.0)[:, None, None]
    strays = strays / np.sqrt((strays**2).mean())
    shapes = ((designs, tasks, 1), (designs, 1, seeds), (designs, tasks, seeds))
    task, seed, rest = (sd / np.sqrt(2) * part(rng, size) for sd, size in zip(spread, shapes, strict=True))
    return np.asarray(task + strays * seed + rest)


def of_tasks(spreads: dict[str, Spread], sets: int) -> Iterator[Row]:
    """Yield rejections over tasks alone, of a pair and of any of ten pairs, and the coverage of its intervals.

    Differences have a standard deviation of .02; rounded: scores of two decimals, so that there are ties and zeros.
    """
    first, second = np.triu_indices(DESIGNS, k=1)
    for (name, part), n, decimals in product(PARTS.items(), (5, 8, 20, 40, 60), (12, 2)):
        rng = np.random.default_rng(n)
        scores = np.stack([0.02 / np.sqrt(2) * part(rng, (DESIGNS, n, 1))[..., 0] for _ in range(sets)])
        d = (np.round(scores, decimals)[:, second] - np.round(scores, decimals)[:, first]).reshape(-1, n)
        p = signed_rank(d).p.reshape(sets, -1)
        (low, high), typical = student_interval(d, LEVEL), hodges_lehmann(d, LEVEL)
        yield {
            "parts": name + (", rounded" if decimals == 2 else ""),
            "tasks": n,
            "signed-rank": _share(p),
            "any of 10, Holm": float(np.mean([_passes(holm(of_set)).any() for of_set in p])),
            "Student holds 0": float(((low <= 0) & (high >= 0)).mean()),
            "Hodges-Lehmann holds 0": float(((typical.low <= 0) & (typical.high >= 0)).mean()),
        }


def of_seeds(spreads: dict[str, Spread], sets: int) -> Iterator[Row]:
    """Yield rejections over tasks, over tasks and seeds, and by both, which a star needs; coverage over both.

    own seeds: with the pair's own mean square of seeds alone; moderated: that drawn towards all designs', as tables
    have it; unshared: runs of seeds that the designs do not share, each pair by itself.
    """
    first, second = np.triu_indices(DESIGNS, k=1)
    for (name, part), (words, spread), tasks, seeds in product(PARTS.items(), spreads.items(), (8, 40), (3, 5, 10)):
        rng, rows = np.random.default_rng([tasks, seeds]), []
        for _ in range(sets):
            cube = drawn(part, spread, (DESIGNS, tasks, seeds), rng)
            runs = over_tasks_and_seeds(cube, first, second)
            apart = compare_runs(cube[first], cube[second], paired=False)
            alone = two_sided(over_tasks_and_seeds(cube, first, second, alone=True))
            p = _over_tasks(cube, first, second, runs)
            whole = _passes(holm(p)) & _passes(holm(two_sided(runs)))
            tested = [p, np.maximum(p, alone), np.maximum(p, two_sided(runs)), np.maximum(p, two_sided(apart))]
            holds = np.abs(runs.mean_seeds) <= reach_of_seeds(runs, LEVEL)
            rows.append([*map(_share, tested), float(whole.any()), float(holds.mean())])
        columns = ("tasks alone", "star, own seeds", "star", "star, unshared", "any of 10, Holm", "holds 0")
        about = {"parts": name, "sd task, seed, rest": words, "tasks": tasks, "seeds": seeds}
        yield about | dict(zip(columns, np.mean(rows, axis=0).tolist(), strict=True))


def _over_tasks(cube: Floats, first: Ints, second: Ints, runs: SeedMeans) -> Floats:
    """Return p of the signed-rank test of seed means; 1 where it points to another side than the mean over both."""
    means = cube.mean(axis=2)
    test = signed_rank(means[second] - means[first])
    return np.where(np.sign(test.w_plus - test.w_minus) == np.sign(runs.mean_seeds), test.p, 1.0)


def of_effects(spreads: dict[str, Spread], sets: int) -> Iterator[Row]:
    """Yield rejections of a main effect and of an interaction of pooler x attention, over tasks and by both tests."""
    levels = {"pooler": 3, "attn": 2}
    contrasts = effect_contrasts(levels)
    for (name, part), (words, spread), seeds in product(PARTS.items(), spreads.items(), (3, 10)):
        rng, p = np.random.default_rng(seeds), {effect: list[tuple[float, float]]() for effect in contrasts}
        for _ in range(sets):
            cube = drawn(part, spread, (6, 40, seeds), rng)
            of_all = contrast_spread(cube)
            for effect, columns in contrasts.items():
                vectors = np.einsum("cts,ck->tks", cube, columns)
                over_tasks = float(sign_flip(vectors.mean(axis=2)).p)
                p[effect].append((over_tasks, max(over_tasks, effect_over_seeds(vectors, of_all).p_seeds)))
        for effect, of_sets in p.items():
            rates = (np.array(of_sets) <= ALPHA).mean(axis=0).tolist()
            about = {"parts": name, "sd task, seed, rest": words, "seeds": seeds, "effect": " x ".join(effect)}
            yield about | dict(zip(("tasks alone", "both"), rates, strict=True))


def of_interaction(spreads: dict[str, Spread], sets: int) -> Iterator[Row]:
    """Yield rejections of design x task type, over tasks and by both tests; tasks of a type, and types' spreads."""
    contrasts = helmert(DESIGNS)
    kinds = (((8,) * 7, (1.0,) * 7), ((8, 8, 8, 16), (4.0, 1.0, 1.0, 1.0)), ((8, 8, 3, 2, 10, 9), (1.0,) * 6))
    for (sizes, scales), (words, spread), seeds in product(kinds, spreads.items(), (3, 10)):
        rng, p = np.random.default_rng(seeds), list[tuple[float, float]]()
        for _ in range(sets):
            of_types = [
                scale * drawn(PARTS["normal"], spread, (DESIGNS, size, seeds), rng)  # a seed moves each type by itself
                for size, scale in zip(sizes, scales, strict=True)
            ]
            vectors = np.einsum("cts,ck->tks", np.concatenate(of_types, axis=1), contrasts)
            over_tasks = permuted(vectors.mean(axis=2), sizes, 499).p
            p.append((over_tasks, max(over_tasks, over_seeds(vectors, sizes).p_seeds)))
        rates = (np.array(p) <= ALPHA).mean(axis=0).tolist()
        about = {"tasks of types": ", ".join(map(str, sizes)), "spreads": ", ".join(f"{x:g}" for x in scales)}
        about |= {"sd task, seed, rest": words, "seeds": str(seeds)}
        yield about | dict(zip(("tasks alone", "both"), rates, strict=True))


def _passes(p: Floats) -> Bools:
    return np.asarray(p <= ALPHA)


def _share(p: Floats) -> float:
    return float(_passes(p).mean())


TABLES: dict[str, Callable[[dict[str, Spread], int], Iterator[Row]]] = {
    "tasks": of_tasks,
    "seeds": of_seeds,
    "effects": of_effects,
    "interaction": of_interaction,
}

if __name__ == "__main__":
    guard(main)
