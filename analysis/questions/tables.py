"""Parts that the tables of questions share: the rows that are shown, cells of tests, and words for pairs and tasks."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from analysis.grids.formats import fraction
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import ALL, BOTH, TASKS_ONLY
from analysis.settings import Settings
from analysis.statistics.seeds import FEWEST_SEEDS

OF_BEST = "pairs, those of the highest means"
PAIR = "Pair (second - first)"  # heads the column of pair names
DAGGER = "†"
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


def tasks_text(kind: str, n: int, one: str = "the ", every: str = "the ") -> str:
    """Return "the 40 tasks" for the block of all, "the 8 STS tasks" for a type; one, every: the words before them."""
    return f"{every}{n} tasks" if kind == ALL else f"{one}{n} {kind} tasks"


def marked_cell(text: str, row: Row, size: str = "", over: str = "wilcoxon") -> Cell:
    """Return the cell of what is tested: its mark, and below it `size`, Holm's p, and that of the test over tasks."""
    both = "" if math.isnan(row["p_holm"]) else f"p {fraction(row['p_holm'])}"
    below = [size, both, f"tasks {fraction(row[f'p_{over}_holm'])}"]
    return Cell(text, mark=mark_of(row), below=tuple(filter(None, below)))


def mark_of(row: Row) -> str:
    """Return the mark of a test, as `star_legend` explains it."""
    return {BOTH: "*", TASKS_ONLY: DAGGER}.get(row["significant"], "")


def p_cell(row: Row, name: str = "p") -> Cell:
    """Return p of the column `name`, and below it Holm's."""
    if math.isnan(row[name]):
        return Cell("-")
    return Cell(fraction(row[name]), below=(fraction(row[f"{name}_holm"]),))


def claims(tests: pd.DataFrame) -> bool:
    """Tell whether any of the tests has the seeds that a claim about designs needs."""
    return bool((tests["n_seeds"] >= FEWEST_SEEDS).any())


def star_legend(tests: pd.DataFrame, settings: Settings, test: str = "Wilcoxon's test") -> str:
    """Return what the marks of `mark_of` mean."""
    alpha = fraction(settings.alpha)
    dagger = f"{DAGGER} = significant over tasks only ({test}, Holm): a statement about these checkpoints"
    if not claims(tests):
        return f"{dagger}; a star takes {FEWEST_SEEDS} seeds of each design"
    return f"* = significant over tasks and seeds (Holm p at most {alpha}); {dagger}"
