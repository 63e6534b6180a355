"""For every pair: significant, equivalent within the margin, or neither."""

import numpy as np
import pandas as pd

from analysis.grids.formats import equals, percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import is_significant
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, filled, p_cell, pair_name
from analysis.settings import Settings

PLACE = 70
SIGNIFICANT, EQUIVALENT, NEITHER = "significant", "equivalent", "neither"  # a text adds the margin to the second


def answer(material: Material) -> Answer:
    """Return the table `equivalence` for the last block (all tasks); pairs.csv has all."""
    settings, rows = material.settings, material.pairs_on(material.last)
    return Answer(
        "equivalence",
        grids=[equivalence_grid(rows.iloc[material.leading(rows)], settings)],
        about={(row["first"], row["second"]): _sentence(row, settings) for row in rows.to_dict("records")},
    )


def within(settings: Settings) -> str:
    """Return "equivalent within .01": the margin is stated wherever the word is said."""
    return f"{EQUIVALENT} within {settings.numbers.margin(settings.rope)}"


def _sentence(row: Row, settings: Settings) -> str:
    """Return what the test of equivalence adds to the verdict on one pair."""
    return f"The pair is {within(settings)} (p {equals(row['p_equivalent_holm'])})." if row["equivalent"] else ""


def equivalence_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row per pair: the outcome, the interval that lies within the margin where p passes, and p."""
    found = np.where(is_significant(table), SIGNIFICANT, np.where(table["equivalent"], within(settings), NEITHER))

    def cells(row: Row) -> list[Cell]:
        ends = settings.numbers.interval(row["low"], row["high"])
        return [Cell(pair_name(row)), Cell(row["outcome"]), Cell(ends), p_cell(row, "p_equivalent")]

    caption = (
        f"Two one-sided tests of the mean difference over tasks and seeds at the margin"
        f" {settings.numbers.margin(settings.rope)} (rope=); p: the larger of the two, below it Holm's."
    )
    header = [PAIR, "Outcome", percent(settings.alpha), "p equivalent"]
    grid = Grid("equivalence", caption, header, title="Practical equivalence of pairs")
    return filled(grid, table.assign(outcome=found), cells, settings.rows_shown, f"{OF_BEST}; pairs.csv has all.")
