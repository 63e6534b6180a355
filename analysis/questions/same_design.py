"""Runs of one design compared as if they were two designs: how often chance alone tells them apart."""

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
from analysis.statistics.arrays import Floats, Ints
from analysis.statistics.correction import passes
from analysis.statistics.seeds import FEWEST_SEEDS, paired_by_seed, two_sided
from analysis.statistics.wilcoxon import signed_rank

PLACE = 65
SIDES = (1, 2, 3, 5)  # runs of a side
MOST, DRAW = 500, 0  # splits of a design's runs; beyond them so many at random, with this seed
ANY = "all designs"


def answer(material: Material) -> Answer | None:
    """Return how many splits of one design's runs the tests tell apart; None without two runs of any design."""
    settings, tasks = material.settings, material.blocks[material.last]
    matrix = material.matrix.loc[tasks]
    cube, rows = seed_cube(material.frame, matrix), list[Row]()
    for design, scores in zip(map(str, matrix.columns), cube, strict=True):
        runs = scores[:, ~np.isnan(scores).any(axis=0)]
        rows += [_row(design, runs, size, settings) for size in SIDES if 2 * size <= runs.shape[1]]
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    together = frame.groupby("side")[["splits", "rejected", "told"]].sum().reset_index().assign(design=ANY)
    frame = pd.concat([together, frame], ignore_index=True)[frame.columns]
    return Answer("same_design", grids=[_grid(frame, material)], frames={"same_design": frame})


def _row(design: str, runs: Floats, size: int, settings: Settings) -> Row:
    """Count what two sides of `size` runs each give. runs: [tasks, seeds]."""
    sides = splits(runs.shape[1], size)
    one, other = runs[:, sides[:, 0]], runs[:, sides[:, 1]]  # [tasks, splits, size]
    over_tasks = signed_rank((other - one).mean(axis=2).T, settings.zeros, settings.decimals)
    rejected = passes(over_tasks.p, settings.alpha)
    cube = np.concatenate([one, other], axis=1).transpose(1, 0, 2)
    of_first = np.arange(len(sides))
    over_seeds = two_sided(paired_by_seed(cube, of_first, of_first + len(sides)))  # nan below the fewest seeds
    told = rejected & passes(over_seeds, settings.alpha)
    counts = {"splits": len(sides), "rejected": int(rejected.sum()), "told": int(told.sum())}
    return {"design": design, "side": size, **counts}


def splits(runs: int, size: int) -> Ints:
    """Return [splits, 2, size]: all ways to take two sides of `size` out of `runs` runs, or `MOST` at random."""
    if comb(runs, size) * comb(runs - size, size) // 2 > MOST:
        draw = np.random.default_rng(DRAW)
        return np.stack([draw.permutation(runs)[: 2 * size].reshape(2, size) for _ in range(MOST)])
    every = combinations(range(runs), size)
    pairs = [(one, other) for one, other in combinations(every, 2) if not set(one) & set(other)]
    return np.array(pairs).reshape(-1, 2, size)


def _grid(frame: pd.DataFrame, material: Material) -> Grid:
    settings = material.settings
    alpha = fraction(settings.alpha)

    def cells(row: Row) -> list[Cell]:
        told = _share(row["told"], row["splits"]) if row["side"] >= FEWEST_SEEDS else "no claim"
        texts = [row["design"], str(row["side"]), f"{row['splits']:,}", _share(row["rejected"], row["splits"]), told]
        return list(map(Cell, texts))

    over = tasks_text(material.last, len(material.blocks[material.last]), "", "all ")
    caption = (
        "Runs of one design with other seeds, dealt to two sides and compared as two designs would be, over"
        f" {over}: nothing but the seed differs, so {percent(1 - settings.alpha)} at most should be told apart. p: of"
        " the signed-rank test over tasks, each side the mean of its runs. Told: by the rule for a star, which takes"
        f" {FEWEST_SEEDS} runs per side or more. No correction; splits of the same runs are no independent trials. Two"
        " designs with common seeds saw the same batches, so chance parts them less than two sides here."
    )
    header = ["Design", "Runs per side", "Splits", f"p at most {alpha}", "Told"]
    grid = Grid("same-design", caption, header, title="Runs of one design against each other")
    return filled(grid, frame, cells, settings.rows_shown, "rows; same_design.csv has all.")


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.0f} %)"
