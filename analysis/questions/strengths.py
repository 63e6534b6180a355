"""The order of all designs by Bradley and Terry's strengths, with the ranks that each design may have."""

import pandas as pd

from analysis.grids.formats import interval, percent, signed
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled
from analysis.statistics.bradley_terry import strengths

PLACE = 85
RARE = 0.02  # share of comparisons won, or lost: below it a strength is hardly known
METHODS = (
    "Designs were ordered by the strengths of the Bradley-Terry model [@bradley1952] with Davidson's ties"
    " [@davidson1970], fitted to who is ahead on each task, with a variance over tasks; the ranks that a design may"
    " have are those that simultaneous intervals of its differences leave [@mogstad2024]."
)


def answer(material: Material) -> Answer | None:
    """Return the table `strengths` over all tasks, best first; None with one task, whose order has no error."""
    settings, n = material.settings, len(material.matrix)
    if n < 2:
        return None
    fitted = strengths(material.matrix.to_numpy(dtype=float), settings.decimals, 1 - settings.alpha)
    table = pd.DataFrame({"design": [str(name) for name in material.matrix.columns], **vars(fitted)})
    table = table.sort_values("rank", kind="stable", ignore_index=True)
    most, level = n * (len(table) - 1), percent(settings.alpha)
    caption = (
        f"Bradley-Terry ranks over {n} tasks. Strength: log odds of being ahead of the average design on a task, with"
        f" its {level} interval. Ranks: those that a design may have with {level} confidence. Points: designs beaten on"
        f" each task, ties half, of {most:,} at most; their order, the Borda count of MTEB's leaderboard, is that of"
        " the strengths. All depend on which designs are in the table, and speak of these runs."
    )
    header = ["Design", "Rank", f"Ranks, {level}", "Strength", level, "Points"]
    grid = Grid("strengths", caption, header, title="Order of all designs")
    grid = filled(grid, table, _cells, settings.rows_shown, "designs; strengths.csv has all.", which="best")
    always = table.loc[~(table["points"] / most).between(RARE, 1 - RARE), "design"].tolist()
    note = (
        f"Strengths: {listed(always)} won or lost nearly all comparisons: such a strength is what the half win"
        " added to each pair makes it, and the others' differ with it, being from the average. Read the ranks."
    )
    notes, frames = [note] if always else [], {"strengths": table}
    return Answer("strengths", grids=[grid], frames=frames, methods=[METHODS], notes=notes, of_scores=False)


def _cells(row: Row) -> list[Cell]:
    ranks = f"{row['rank_low']} to {row['rank_high']}" if row["rank_low"] < row["rank_high"] else str(row["rank_low"])
    sizes = [signed(row["strength"], 2), interval(row["low"], row["high"]), f"{row['points']:,.1f}"]
    return [*map(Cell, (row["design"], str(row["rank"]), ranks, *sizes))]
