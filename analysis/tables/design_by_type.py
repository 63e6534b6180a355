"""Design x type: do the differences between designs depend on the type of task, and how large are they on each?

Over tasks and seeds by F; over tasks by permutation within types of unequal spread.
"""

from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas, list_axes, panel_axes
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE, MOST_DESIGNS
from analysis.formats import level, p_is
from analysis.render import Section, Table
from analysis.statistics.arrays import rounded
from analysis.statistics.contrasts import helmert
from analysis.statistics.correction import passes
from analysis.statistics.interaction import over_seeds, permuted
from analysis.statistics.seeds import FEWEST_SEEDS
from analysis.tables.compared_pairs import from_design, pairs_among, seed_cube
from analysis.tables.comparison import Comparison
from analysis.tables.marks import LOOKS, family_text, marked, marks_text

Types = dict[str, list[str]]


def section(compared: Comparison) -> Section | None:
    """Return the test, the differences by type and their figure; None below two types of two tasks."""
    types = {kind: tasks for kind, tasks in compared.types.items() if len(tasks) > 1}
    if len(types) < 2:
        return None
    designs, sentence = compared.highest(MOST_DESIGNS)
    test, pairs = interaction(compared, designs, types), pairs_among(compared.pairs, designs)
    shown = from_design(pairs[pairs["type"].isin(types)], compared.reference)
    draw = partial(_figures, shown, types, compared)
    notes = [_finding(test, len(types), compared.settings.alpha), *filter(None, [sentence])]
    tables, frames = [_table(shown, types, compared)], {"design_by_type": pd.DataFrame([test])}
    return Section("design_by_type", "Designs by type of task", tables, draw, frames, notes)


def interaction(compared: Comparison, designs: list[str], types: Types) -> dict[str, Any]:
    """Return the tests of design x type: `p` over tasks and seeds (nan below three), `p_permutation` over tasks."""
    sizes = [len(tasks) for tasks in types.values()]
    matrix, contrasts = compared.matrix.loc[list(chain(*types.values())), designs], helmert(len(designs))
    vectors = rounded(matrix.to_numpy(dtype=np.float64) @ contrasts)
    tasks, seeds = permuted(vectors, sizes), over_seeds(seed_cube(compared.frame, matrix), contrasts, sizes)
    sized = {"n_designs": len(designs), "n_types": len(types), "n_tasks": sum(sizes), "n_seeds": seeds.n_seeds}
    p = seeds.p_seeds if seeds.n_seeds >= FEWEST_SEEDS else np.nan
    found = {"p": p, "F": seeds.F_seeds, "df": seeds.df_seeds, "df_error": seeds.df_error_seeds}
    return sized | found | {"p_permutation": tasks.p, "statistic": tasks.statistic}


def _finding(test: dict[str, Any], types: int, alpha: float) -> str:
    """Return whether designs differ by type, in one sentence: both tests decide, since F errs with small types."""
    over = f"{p_is(test['p_permutation'])} over tasks"
    if np.isnan(test["p"]):
        return f"Design x type: {over}; a statement about designs takes {FEWEST_SEEDS} seeds of each."
    larger = np.array(max(test["p"], test["p_permutation"]))
    depend = "depend" if passes(larger, alpha) else "do not depend significantly"
    return (
        f"The differences between designs {depend} on which of these {types} types a task has: {p_is(test['p'])} over"
        f" tasks and seeds, {over}."
    )


def _table(shown: pd.DataFrame, types: Types, compared: Comparison) -> Table:
    """One row per design, one column per type: mean difference from the reference with its mark."""
    rows = []
    for design, of in shown.groupby("second", sort=False):
        by_type = of.set_index("type")
        cells = [
            marked(compared.unit.signed(by_type.loc[k, "mean_difference"]), by_type.loc[k, "significant"])
            for k in types
        ]
        rows.append([compared.design_text(str(design)), *cells])
    header = ["Design", *(f"{kind} ({len(tasks)})" for kind, tasks in types.items())]
    caption = (
        f"Mean difference from {compared.reference} on each of these {len(types)} types."
        f" {family_text(shown, 'pair by type')}, a second one beside that of all tasks; {marks_text(shown)}."
    )
    frame = pd.DataFrame(rows, columns=header)
    return compared.table("design-by-type", "Differences by type of task", caption, frame)


def _figures(shown: pd.DataFrame, types: Types, compared: Comparison) -> list[Drawing]:
    """One panel per type, each with its own scale: difference from the reference with its interval."""
    names = short_names(shown["second"].unique())
    across = min(len(types), 4 if len(types) in (4, 7, 8) else 3)
    down = -(-len(types) // across)
    figure = canvas(inches(names.values()) + 0.4 + 1.9 * across, 0.7 + down * (0.75 + LINE * 1.15 * len(names)))
    grid = panel_axes(figure, len(types), across, sharey=True)
    for axes, kind in zip(grid, types, strict=True):
        rows = shown[shown["type"] == kind].to_dict("records")
        for place, row in enumerate(rows):
            look = LOOKS[row["significant"]]
            axes.hlines(place, row["low"], row["high"], color=look["color"], linewidth=1.3)
            axes.plot(row["mean_difference"], place, markersize=5, **look)
        axes.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        list_axes(axes, len(rows), 4)
        axes.set_title(f"{kind} ({len(types[kind])})")
    grid[0].set_yticks(range(len(names)), names.values())
    one, over = compared.reference, " and seeds" if shown["p"].notna().any() else ""
    figure.supxlabel(f"mean difference from {short_names([one])[one]}", fontsize=8)
    discs = "Discs: significant over tasks and seeds; d" if over else "D"
    caption = (
        f"Mean difference from {one} on each type with its {level(compared.settings.alpha)} interval over tasks{over},"
        f" not corrected, each panel with its own scale. {discs}iamonds: significant over tasks only (Wilcoxon, Holm)."
    )
    return [Drawing("design_by_type", "Designs by type of task", caption, figure)]
