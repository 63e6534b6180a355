"""The smallest difference that is found in 80 % of studies of these tasks, by the number of seeds of each design."""

import numpy as np
import pandas as pd

from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import pair_places, seed_cube
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row
from analysis.statistics.power import components, detectable
from analysis.statistics.seeds import FEWEST_SEEDS, spreads

PLACE = 110
SEEDS = np.arange(1, 11)


def answer(material: Material) -> Answer | None:
    """Return the table; None where no pair has the seeds of the test."""
    table = power_table(material)
    if table["median"].isna().all():
        return None
    settings, family = material.settings, len(material.pairs_on(material.last))
    score = settings.numbers.score

    def cells(row: Row) -> list[Cell]:
        return [Cell(f"{row['seeds']:.0f}"), *(Cell(score(row[name])) for name in ("median", "smallest", "largest"))]

    caption = (
        f"Smallest true difference over {material.over} that the test over tasks and seeds finds in 80 % at"
        f" {settings.alpha:g} after Holm over {family:,} (its first step), by the seeds of each design: median,"
        " smallest and largest of the pairs. From the components of variance of these runs."
    )
    rows = [cells(row) for row in table.dropna().to_dict("records")]
    grid = Grid("power", caption, ["Seeds", "Median", "Smallest", "Largest"], rows, title="Detectable difference")
    return Answer("power", grids=[grid], frames={"power": table})


def power_table(material: Material) -> pd.DataFrame:
    """Return the rows `seeds, median, smallest, largest` over the pairs on all tasks; nan below three seeds."""
    matrix = material.matrix.loc[material.blocks[material.last]]
    of, places = spreads(seed_cube(material.frame, matrix)), pair_places(list(matrix.columns), material.control)
    found = detectable(
        components(of, *places), material.settings.alpha / len(places[0]), np.stack([SEEDS[:, None]] * 2)
    )
    known = ((of.counts >= FEWEST_SEEDS) & ~of.one_run)[np.stack(places)].any(axis=0)  # a constant has no components
    found = found[:, known] if known.any() else np.full((len(SEEDS), 1), np.nan)
    columns = {"median": np.median(found, axis=1), "smallest": found.min(axis=1), "largest": found.max(axis=1)}
    return pd.DataFrame({"seeds": SEEDS, **columns})
