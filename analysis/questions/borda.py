"""The ranking of the leaderboard, with how far another draw of tasks would move each design."""

import pandas as pd

from analysis.grids.formats import percent, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled
from analysis.statistics.borda import DRAWN_UP_TO, RESAMPLES, borda

PLACE = 85
METHODS = "Designs are also ranked by Borda count, with a bootstrap of the tasks for the rank's interval."


def answer(material: Material) -> Answer:
    """Return the table `borda` over all tasks, best first."""
    settings, n = material.settings, len(material.matrix)
    ranking = borda(material.matrix.to_numpy(dtype=float), settings.decimals, level=1 - settings.alpha)
    table = pd.DataFrame({"design": [str(name) for name in material.matrix.columns], **vars(ranking)})
    table = table.rename(columns={"low": "rank_low", "high": "rank_high", "first": "p_first"})
    table = table.sort_values("rank", kind="stable", ignore_index=True)
    drawn = f"{RESAMPLES:,} bootstrap samples of the tasks (seed 0)"
    if n > DRAWN_UP_TO:
        drawn = f"{RESAMPLES:,} draws (seed 0) from the normal law of bootstrap samples of the tasks"
    caption = (
        f"Borda rank over {n} tasks, as on MTEB's leaderboard: points = designs beaten on each task, ties half, of"
        f" {n * (len(table) - 1):,} at most. Interval and probability of being first: {drawn}. The"
        " rank depends on which designs are in the table."
    )
    header = ["Design", "Rank", "Points", f"Rank, {percent(settings.alpha)}", "First"]
    grid = Grid("borda", caption, header, title="Borda rank")
    grid = filled(grid, table, _cells, settings.rows_shown, "designs; borda.csv has all.", which="best")
    return Answer("borda", grids=[grid], frames={"borda": table}, methods=[METHODS])


def _cells(row: Row) -> list[Cell]:
    interval = f"{row['rank_low']} to {row['rank_high']}"
    return [*map(Cell, (row["design"], str(row["rank"]), f"{row['points']:,.1f}", interval, score(row["p_first"], 3)))]
