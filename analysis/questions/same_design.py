"""Runs of one design compared as if they were two designs: how often the tests find a difference."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from analysis.grids.formats import fraction, percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import seed_cube
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled, tasks_text
from analysis.settings import Settings
from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.correction import passes
from analysis.statistics.seeds import FEWEST_SEEDS, compare_runs, copies, two_sided
from analysis.statistics.wilcoxon import signed_rank

PLACE = 65
SIDES = ((1, 1), (2, 2), (3, 3), (5, 5), (3, 7))  # runs of the two sides
MOST, DRAW = 2500, 0  # splits of a design's runs; beyond them so many at random, with this seed
VALUES = 5_000_000  # scores in the splits of all designs at most, for one number of runs per side
ANY = "all designs"
SHARES = ("rejected", "significant")


def answer(material: Material) -> Answer | None:
    """Return how many splits of one design's runs the tests find different; None without two runs of any design."""
    tasks = material.blocks[material.last]
    frame = same_design(material.frame, list(material.designs), tasks, material.settings)
    if frame.empty:
        return None
    over = tasks_text(material.last, len(tasks), "", "all ")
    grids = [split_grid(frame, over, material.settings)]
    return Answer("same_design", grids=grids, frames={"same_design": frame}, of_scores=False)


def same_design(frame: pd.DataFrame, designs: list[str], tasks: list[str], settings: Settings) -> pd.DataFrame:
    """Return one row per (design, runs of the sides), first of all designs; empty where none has two runs of its own.

    frame: long, with design, seed, task, score. `splits`; the shares of them that are `rejected` by the signed-rank
    test over tasks alone, and `significant` over tasks and seeds, nan with fewer than three runs on a side;
    `se_` before each: its standard error by `jackknife`, that of all designs from those of each.
    """
    cube, rows = seed_cube(frame, pd.DataFrame(index=tasks, columns=designs)), list[Row]()
    for design, scores in zip(designs, cube, strict=True):
        runs = scores[:, ~np.isnan(scores).any(axis=0)]
        if runs.shape[1] and copies(runs[None]).all():  # one run, with whatever seed
            continue
        for sides in SIDES:
            most = min(MOST, max(1, VALUES // (sum(sides) * len(tasks) * len(designs))))
            if sum(sides) <= runs.shape[1]:
                rows += [{"design": design, **_row(runs, splits(runs.shape[1], *sides, most), sides[0], settings)}]
    sizes = [[row for row in rows if (row["side"], row["other_side"]) == sides] for sides in SIDES]
    several = len({row["design"] for row in rows}) > 1
    return pd.DataFrame([*(map(_pooled, filter(None, sizes)) if several else ()), *rows])


def _pooled(rows: list[Row]) -> Row:
    """Return the row of all designs, each with the weight of its splits."""
    weights = np.array([row["splits"] for row in rows])
    pooled: Row = {"design": ANY, **{name: rows[0][name] for name in ("side", "other_side")}, "splits": weights.sum()}
    for name in SHARES:
        shares, errors = (np.array([row[key] for row in rows]) for key in (name, f"se_{name}"))
        pooled[name] = np.average(shares, weights=weights)
        pooled[f"se_{name}"] = np.sqrt(((weights * errors) ** 2).sum()) / weights.sum()
    return pooled


def _row(runs: Floats, sides: Ints, one: int, settings: Settings) -> Row:
    """Return what the splits `sides` give, whose first side has `one` runs. runs: [tasks, seeds]."""
    other, scores = sides.shape[1] - one, runs.T[sides]  # splits, runs of both sides, tasks
    first, second = scores[:, :one].mean(axis=1), scores[:, one:].mean(axis=1)
    over_tasks = signed_rank(second - first, settings.decimals)
    marks = {"rejected": passes(over_tasks.p, settings.alpha)}
    if one >= FEWEST_SEEDS:
        by_task = scores.swapaxes(1, 2)
        seeds = compare_runs(by_task[..., :one], by_task[..., one:])
        marks["significant"] = passes(two_sided(seeds), settings.alpha)
    row: Row = {"side": one, "other_side": other, "splits": len(sides)}
    row |= {name: marks[name].mean() if name in marks else np.nan for name in SHARES}
    errors = {name: jackknife(marked, sides, runs.shape[1]) for name, marked in marks.items()}
    return row | {f"se_{name}": errors.get(name, np.nan) for name in SHARES}


def jackknife(marks: Bools, sides: Ints, runs: int) -> float:
    """Return the standard error of the share of marked splits: each run left out, with all splits that hold it.

    sides: [splits, runs of both sides]. Splits of the same runs are no independent trials; runs are. Jackknife of Efron
    and Stein 1981, Ann. Stat. 9: on average not too small, but 0 where no split is marked; nan where every split holds
    some run.
    """
    without = np.array([(sides != run).all(axis=1) for run in range(runs)])
    if not without.any(axis=1).all():
        return float("nan")
    shares = without.astype(np.float64) @ marks / without.sum(axis=1)
    return float(np.sqrt((runs - 1) * shares.var()))


def splits(runs: int, one: int, other: int, most: int = MOST) -> Ints:
    """Return [splits, one + other]: all ways to take two sides out of `runs` runs, or `most` of them at random."""
    if comb(runs, one) * comb(runs - one, other) // (1 + (one == other)) > most:
        draw = np.random.default_rng(DRAW)
        return np.stack([draw.permutation(runs)[: one + other] for _ in range(most)])
    every = [
        (*first, *second)
        for first in combinations(range(runs), one)
        for second in combinations(sorted(set(range(runs)) - set(first)), other)
        if one != other or first < second
    ]
    return np.array(every).reshape(-1, one + other)


def split_grid(frame: pd.DataFrame, over: str, settings: Settings) -> Grid:
    """Return the table of `same_design`. over: "all 40 tasks"."""
    alpha = fraction(settings.alpha)

    def cells(row: Row) -> list[Cell]:
        one, other = row["side"], row["other_side"]
        sides = str(one) if one == other else f"{one} and {other}"
        shares = [_share(row, name) for name in SHARES]
        return list(map(Cell, [row["design"], sides, f"{row['splits']:,}", *shares]))

    caption = (
        "Runs of one design with other seeds, dealt to two sides and compared as two designs would be, over"
        f" {over}: nothing but the seed differs, so {percent(1 - settings.alpha)} at most should be significant. Over"
        " tasks: Wilcoxon's test of the means; over tasks and seeds: the primary test, both uncorrected. After +-:"
        " standard error, a jackknife over runs; none where a split takes all runs."
    )
    header = ["Design", "Runs per side", "Splits", f"p at most {alpha}, over tasks", "over tasks and seeds"]
    grid = Grid("same-design", caption, header, title="Runs of one design against each other")
    return filled(grid, frame, cells, settings.rows_shown, "rows; same_design.csv has all.")


def _share(row: Row, name: str) -> str:
    share, error = 100 * row[name], 100 * row[f"se_{name}"]
    if np.isnan(share):
        return "no claim" if row["side"] < FEWEST_SEEDS else "-"
    return f"{share:.1f}{'' if np.isnan(error) else f' +- {error:.1f}'} %"
