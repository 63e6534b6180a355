"""Parts that the tables of questions share: the rows that are shown, cells of tests, and words for pairs and tasks."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import fraction
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import ALL
from analysis.settings import Settings
from analysis.statistics.arrays import Bools
from analysis.statistics.correction import NAMES, passes
from analysis.statistics.seeds import FEWEST_SEEDS

OF_BEST = "pairs, those of the highest means"
PAIR = "Pair (second - first)"  # heads the column of pair names
NO_CLAIM = (
    f"it would be a claim about designs, which takes {FEWEST_SEEDS} seeds or more of each; p speaks of these"
    " runs on these tasks"
)
Row = dict[Any, Any]  # column -> value


def pair_name(row: Row) -> str:
    """Return the name of the pair of a row, as the footnotes know it."""
    return f"{row['second']} - {row['first']}"


def rest_text(shown: int, total: int, end: str, which: str = "first") -> str:
    """Return "The first 45 of 300 pairs; pairs.csv has all.", or "" where all are shown. end: from "pairs" on."""
    return f"The {which} {shown} of {total} {end}" if shown < total else ""


def filled(grid: Grid, table: pd.DataFrame, cells: Callable[[Row], list[Cell]], shown: int, end: str) -> Grid:
    """Return the grid with the first `shown` rows of a table. cells: of one row; end: for `rest_text`."""
    rows = [cells(row) for row in table.head(shown).to_dict("records")]
    return replace(grid, rows=rows, rest=rest_text(len(rows), len(table), end))


def after_correction(settings: Settings) -> str:
    """Return " after Holm", or "" without a correction."""
    return "" if settings.correction == "none" else f" after {NAMES[settings.correction]}"


def tasks_text(kind: str, n: int, one: str = "the ", every: str = "the ") -> str:
    """Return "the 40 tasks" for the block of all, "the 8 STS tasks" for a type; one, every: the words before them."""
    return f"{every}{n} tasks" if kind == ALL else f"{one}{n} {kind} tasks"


def marked_cell(text: str, row: Row, settings: Settings, size: str = "") -> Cell:
    """Return the cell of what a test is about: its mark, and below it `size` and the corrected p, then that over seeds.

    Where alpha is out of reach it has the smallest p that so many tasks allow instead.
    """
    below = [fraction(row["p_adjusted"])]
    if row["reachable"] == "no":
        below = [f"n.a.: p >= {fraction(row['p_min'])}"]
    elif row["reachable"] == "uncorrected":
        below = [f"n.a.: p >= {fraction(row['p_min_adjusted'])}", f"raw {fraction(row['p'])}"]
    elif not math.isnan(row["p_seeds_adjusted"]):
        below += [f"seeds {fraction(row['p_seeds_adjusted'])}"]
    return Cell(text, mark=mark_of(row, settings), below=tuple(filter(None, [size, *below])))


def mark_of(row: Row, settings: Settings) -> str:
    """Return the mark of a test, "*", "(*)" or "", as `star_legend` explains them: none where seeds are too few."""
    if row["n_seeds"] < FEWEST_SEEDS or row["reachable"] == "no":
        return ""
    return "*" if row["told"] else "(*)" if passes(row["p"], settings.alpha) else ""


def p_cell(row: Row, settings: Settings, ending: str = "") -> Cell:
    """Return p, and below it the corrected p; where alpha is out of reach, the smallest p that is allowed.

    ending: of the names of the columns.
    """
    p, adjusted = fraction(row[f"p{ending}"]), row[f"p_adjusted{ending}"]
    if row.get(f"reachable{ending}", "yes") != "yes":
        return Cell(p, below=(f"n.a.: p >= {fraction(row[f'p_min_adjusted{ending}'])}",))
    return Cell(p, below=() if settings.correction == "none" else (fraction(adjusted),))


def claims(tests: pd.DataFrame) -> bool:
    """Tell whether any of the tests has the seeds that a claim about designs needs."""
    return bool((tests["n_seeds"] >= FEWEST_SEEDS).any())


def star_legend(tests: pd.DataFrame, settings: Settings) -> str:
    """Return what the marks of `mark_of` mean, or why there are none."""
    if not claims(tests):
        return f"No star: {NO_CLAIM}"
    return (
        f"* = told of the designs: p at most {fraction(settings.alpha)}{after_correction(settings)}, over tasks, and of"
        " the mean over tasks and seeds (seeds); (*) = of these runs alone, or before the correction; no mark with"
        f" fewer than {FEWEST_SEEDS} seeds of either"
    )


def opposite(tests: pd.DataFrame, settings: Settings) -> Bools:
    """Tell which tests pass both over tasks and over tasks and seeds, but with another design ahead: not told."""
    both = tests[["p_adjusted", "p_seeds_adjusted"]].max(axis=1, skipna=False).to_numpy(dtype=np.float64)
    return np.asarray(passes(both, settings.alpha) & ~tests["told"].to_numpy(dtype=np.bool_))
