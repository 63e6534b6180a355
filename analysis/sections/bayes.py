"""For every pair: is the later design practically worse, equivalent or better?"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.formats import fraction, score
from analysis.sections.section import Material, Section
from analysis.settings import Settings
from analysis.statistics.bayes import DRAWS, PRIOR, bayes_signed_rank
from analysis.tables.grid import Cell, Grid

if TYPE_CHECKING:
    import pandas as pd

MOST_PAIRS = 120  # sixteen designs; a pair takes about 20 ms
SURE = 0.95
FEWEST = 6  # tasks: two that agree make .96 already


def bayes_section(material: Material) -> Section:
    """Return the table `bayes` for the last block (all tasks); bayes.csv has all, of many pairs that one."""
    import pandas as pd

    settings, matrix = material.settings, material.matrix
    kind, tasks = list(material.blocks.items())[-1]
    pairs = material.pairs[material.pairs["type"] == kind][["first", "second"]]
    means = matrix.loc[tasks].mean().round(settings.decimals)
    kept = pairs[_chosen(pairs, means, material.control)]
    tables, blocks = [], material.blocks if len(kept) == len(pairs) else {kind: tasks}
    for name, own in blocks.items():
        values = matrix.loc[own]
        differences = (values[kept["second"]].to_numpy() - values[kept["first"]].to_numpy()).T
        found = bayes_signed_rank(differences, settings.rope, decimals=settings.decimals)
        columns = {"type": name, "n_tasks": len(own), "first": kept["first"].array, "second": kept["second"].array}
        tables.append(pd.DataFrame({**columns, "rope": settings.rope, **vars(found)}))
    notes = []
    if len(kept) < len(pairs):
        notes.append(
            f"The Bayesian comparison was made on {kind} for {len(kept)} of {len(pairs)} pairs, those among the"
            " designs with the highest means"
            + (f" and {material.control}" if material.control else "")
            + "; models= chooses others."
        )
    return Section("bayes", [bayes_grid(tables[-1], settings)], {"bayes.csv": pd.concat(tables)}, notes)


def _chosen(pairs: "pd.DataFrame", means: "pd.Series", control: str) -> NDArray[np.bool_]:
    """Which pairs are compared: all, or of too many those among as many of the highest means as the bound allows."""
    if len(pairs) <= MOST_PAIRS:
        return np.ones(len(pairs), dtype=bool)
    place = {str(name): k for k, name in enumerate(means.sort_values(ascending=False, kind="stable").index)}
    place[control] = 0
    deepest = np.maximum(pairs["first"].map(place).to_numpy(), pairs["second"].map(place).to_numpy())
    return np.asarray(deepest < np.sort(deepest)[MOST_PAIRS])


def bayes_grid(table: "pd.DataFrame", settings: Settings) -> Grid:
    """One row a pair of one block: three probabilities, bold from .95 on."""
    rows, kind, n = [], table["type"].iloc[0], int(table["n_tasks"].iloc[0])
    for row in table.head(settings.rows_shown).itertuples():
        values = (row.worse, row.equivalent, row.better)
        cells = [Cell(score(value, 3), "best" if value >= SURE and n >= FEWEST else "") for value in values]
        rows.append([Cell(f"{row.second} - {row.first}"), *cells])
    rest = f"The first {len(rows)} of {len(table)} pairs; bayes.csv has all." if len(table) > len(rows) else ""
    bold = f"Bold: at least {fraction(SURE)}."
    if n < FEWEST:
        bold = f"With fewer than {FEWEST} tasks nothing is bold: two that agree would make .96 already."
    caption = (
        f"Bayesian signed-rank test on {kind} (n = {n}): posterior probability that the second design of a pair is"
        f" practically worse, equivalent or better, where differences up to {fraction(settings.rope)} are equivalent"
        f" (rope=); Dirichlet-process prior of strength {fraction(PRIOR)} at a difference of 0; {DRAWS:,} draws"
        f" (seed 0). {bold} These are no p-values, and no correction for many pairs is made."
    )
    header = ["Pair (second - first)", "worse", "equivalent", "better"]
    title = f"Practical equivalence of pairs, {kind}"
    return Grid("bayes", caption, header, rows, rest=rest, title=title)
