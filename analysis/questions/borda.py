"""The ranking of the leaderboard, with how far another draw of tasks would move each design."""

import pandas as pd

from analysis.grids.formats import percent, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material
from analysis.settings import Settings
from analysis.statistics.borda import DRAWN_UP_TO, RESAMPLES, borda

PLACE = 130
METHODS = "Designs are also ranked by Borda count, with a bootstrap of the tasks for the rank's interval."


def answer(material: Material) -> Answer:
    """Return the table `borda` over all tasks, best first."""
    found = borda(material.matrix.to_numpy(dtype=float), material.settings.decimals, level=1 - material.settings.alpha)
    table = pd.DataFrame({"design": [str(name) for name in material.matrix.columns], **vars(found)})
    table = table.rename(columns={"low": "rank_low", "high": "rank_high", "first": "p_first"})
    table = table.sort_values("rank", kind="stable", ignore_index=True)
    grid = borda_grid(table, len(material.matrix), material.settings)
    return Answer(
        "borda",
        grids=[grid],
        frames={"borda": table},
        methods=[METHODS],
    )


def borda_grid(table: pd.DataFrame, n: int, settings: Settings) -> Grid:
    """One row a design: rank, points, the interval of the rank, the probability of being first."""
    rows = []
    for row in table.head(settings.rows_shown).itertuples():
        interval = f"{row.rank_low} to {row.rank_high}"
        cells = (str(row.rank), f"{row.points:,.1f}", interval, score(row.p_first, 3))
        rows.append([Cell(row.design), *map(Cell, cells)])
    rest = f"The best {len(rows)} of {len(table)} designs; borda.csv has all." if len(table) > len(rows) else ""
    drawn = f"{RESAMPLES:,} bootstrap samples of the tasks (seed 0)"
    if n > DRAWN_UP_TO:
        drawn = f"{RESAMPLES:,} draws (seed 0) from the normal law of bootstrap samples of the tasks"
    caption = (
        f"Borda rank over {n} tasks, as on MTEB's leaderboard: points = designs beaten on each task, ties half, of"
        f" {n * (len(table) - 1):,} at most. Interval and probability of being first: {drawn}. The"
        " rank depends on which designs are in the table."
    )
    header = ["Design", "Rank", "Points", f"Rank, {percent(settings.alpha)}", "First"]
    return Grid("borda", caption, header, rows, rest=rest, title="Borda rank")
