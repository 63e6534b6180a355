"""The smallest difference that is found in 80 % of studies of these tasks, by the number of seeds of each design."""

import numpy as np
import pandas as pd

from analysis.formats import count_of
from analysis.render import Section, Table
from analysis.statistics.power import components, detectable
from analysis.statistics.seeds import spreads
from analysis.tables.compared_pairs import pair_places, seed_cube, with_components
from analysis.tables.comparison import Comparison

SEEDS = np.array([3, 4, 5, 6, 8, 10])


def section(compared: Comparison) -> Section | None:
    """Return the table; None where no pair has the seeds of the test."""
    table = power_table(compared)
    if table is None:
        return None
    pairs = count_of(len(compared.main_pairs), "pair")
    caption = (
        f"Smallest true difference over {compared.over} that the test over tasks and seeds finds in 80 % of studies at"
        f" {compared.settings.alpha:g} after Holm's first step over {pairs}: median and extremes of the pairs."
        " From the components of variance that these scores show."
    )
    titles = {"seeds": "Seeds", "median": "Median", "smallest": "Smallest", "largest": "Largest"}
    formats = dict.fromkeys(list(titles.values())[1:], compared.unit.score)
    made = Table("power", "Detectable difference", caption, table.rename(columns=titles), formats)
    return Section("power", "Detectable difference", [made])


def power_table(compared: Comparison) -> pd.DataFrame | None:
    """Return the rows `seeds, median, smallest, largest` over the pairs on all tasks; None where none is tested."""
    matrix = compared.matrix.loc[compared.blocks[compared.last]]
    of, places = spreads(seed_cube(compared.frame, matrix)), pair_places(list(matrix.columns), compared.control)
    known = with_components(of, *places)
    if not known.any():
        return None
    level = compared.settings.alpha / len(places[0])
    seeds = np.broadcast_to(SEEDS[:, None], (2, len(SEEDS), len(places[0])))
    found = detectable(components(of, *places), level, seeds)[:, known]
    sizes = {"median": np.median(found, axis=1), "smallest": found.min(axis=1), "largest": found.max(axis=1)}
    return pd.DataFrame({"seeds": SEEDS, **sizes})
