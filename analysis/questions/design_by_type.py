"""Design x type: do the differences between designs depend on the type of task, and how large are they on each?

Over tasks by permutation within types of unequal spread; over tasks and seeds by F.
"""

from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas, list_axes, panel_axes
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE, MOST_DESIGNS
from analysis.grids.formats import Numbers, equals, percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import is_significant, pairs_among, seed_cube
from analysis.questions.pair_figures import LOOKS
from analysis.questions.pair_texts import correction_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, mark_of, marked_cell, star_legend
from analysis.settings import Settings
from analysis.statistics.arrays import rounded
from analysis.statistics.contrasts import helmert
from analysis.statistics.correction import passes
from analysis.statistics.interaction import over_seeds, permuted
from analysis.statistics.seeds import FEWEST_SEEDS

PLACE = 45
Types = dict[str, list[str]]


def answer(material: Material) -> Answer | None:
    """Return the test and the differences by type; None below two types of two tasks."""
    types = types_tested(material)
    if len(types) < 2:
        return None
    designs, sentence = material.highest(MOST_DESIGNS)
    settings, test = material.settings, _interaction(material, designs, types)
    pairs = pairs_among(material.pairs, designs)
    reference = material.control or str(material.matrix[designs].mean().idxmax())
    shown, finding = from_reference(pairs[pairs["type"].isin(types)], reference), _verdict(test, settings)
    return Answer(
        "design_by_type",
        grids=[_grid(shown, reference, types, settings, f"{finding} {sentence}".strip())],
        draw=lambda: [_figure(shown, reference, types, settings, sentence)],
        frames={"design_by_type": pd.DataFrame([test])},
        notes=[finding],
    )


def types_tested(material: Material) -> Types:
    """Return the types that have two tasks or more, and their tasks."""
    return {kind: tasks for kind, tasks in material.types.items() if len(tasks) > 1}


def _interaction(material: Material, designs: list[str], types: Types) -> dict[str, Any]:
    """Return both tests of design x type."""
    sizes = [len(tasks) for tasks in types.values()]
    matrix, contrasts = material.matrix.loc[list(chain(*types.values())), designs], helmert(len(designs))
    vectors = rounded(matrix.to_numpy(dtype=np.float64) @ contrasts, material.settings.decimals)
    tasks, seeds = permuted(vectors, sizes), over_seeds(seed_cube(material.frame, matrix), contrasts, sizes)
    sized = {"n_designs": len(designs), "n_types": len(types), "n_tasks": sum(sizes), "n_seeds": seeds.n_seeds}
    claim = seeds.n_seeds >= FEWEST_SEEDS
    found = {"p": seeds.p_seeds if claim else np.nan, "F": seeds.F_seeds, "df": seeds.df_seeds}
    return sized | found | {"df_error": seeds.df_error_seeds, "p_permutation": tasks.p, "statistic": tasks.statistic}


def from_reference(simple: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return the rows that hold the reference, turned to design minus reference; `design`: the other one."""
    rows = simple[(simple["first"] == reference) | (simple["second"] == reference)]
    side = np.where(rows["first"] == reference, 1, -1)
    ends = {"low": rows["low"].where(side > 0, -rows["high"]), "high": rows["high"].where(side > 0, -rows["low"])}
    design = rows["second"].where(side > 0, rows["first"])
    return rows.assign(design=design, mean_difference=rows["mean_difference"] * side, **ends)


def _verdict(test: dict[str, Any], settings: Settings) -> str:
    """Return whether designs differ by type, in one sentence."""
    over = f"p {equals(test['p_permutation'])} over tasks"
    if test["n_seeds"] < FEWEST_SEEDS:
        return f"Design x type: {over}; a statement about designs takes {FEWEST_SEEDS} seeds of each."
    depend = "depend" if passes(np.array(test["p"]), settings.alpha) else "do not depend significantly"
    both = f"p {equals(test['p'])} over tasks and seeds"
    return f"The differences between designs {depend} on the type of task: {both}, {over}."


def _grid(shown: pd.DataFrame, reference: str, types: Types, settings: Settings, sentences: str) -> Grid:
    """One row per design, one column per type: mean difference from the reference, interval and p."""
    rows, signed = [], settings.numbers.signed
    for design, of_types in shown.groupby("design", sort=False):
        records = of_types.set_index("type").loc[list(types)].to_dict("records")
        cells = [marked_cell(signed(row["mean_difference"]), row, _ends(row, settings.numbers)) for row in records]
        rows.append([Cell(str(design)), *cells])
    caption = (
        f"Mean difference from {reference} on each type, its {percent(settings.alpha)} interval (uncorrected) and"
        f" Holm's p of both tests; {correction_text(shown, settings)}. {star_legend(shown, settings)}. {sentences}"
    )
    header = ["Design", *(f"{kind} (n = {len(tasks)})" for kind, tasks in types.items())]
    return Grid("design-by-type", caption, header, rows[: settings.rows_shown], title="Designs by type of task")


def _ends(row: Row, numbers: Numbers) -> str:
    """Return the interval, or nothing where two or three tasks leave it wider than all scores."""
    low, high = row["low"], row["high"]
    return numbers.interval(low, high) if high - low < 1 else ""


def _figure(shown: pd.DataFrame, reference: str, types: Types, settings: Settings, sentence: str) -> Drawing:
    """One panel per type, each with its own scale: difference from the reference with its interval."""
    names = short_names(shown["design"].unique())
    across = min(len(types), 4 if len(types) in (4, 7, 8) else 3)
    down = -(-len(types) // across)
    figure = canvas(inches(names.values()) + 0.4 + 1.9 * across, 0.7 + down * (0.75 + LINE * 1.15 * len(names)))
    grid = panel_axes(figure, len(types), across, sharey=True)
    for axes, kind in zip(grid, types, strict=True):
        rows = shown[shown["type"] == kind].to_dict("records")
        for place, row in enumerate(rows):
            look = LOOKS[mark_of(row)]
            axes.hlines(place, row["low"], row["high"], color=look["color"], linewidth=1.3)
            axes.plot(row["mean_difference"], place, markersize=5, **look)
        axes.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        list_axes(axes, len(rows), 4, settings.numbers)
        axes.set_title(f"{kind} (n = {len(types[kind])})")
    grid[0].set_yticks(range(len(names)), names.values())
    figure.supxlabel(f"mean difference from {short_names([reference])[reference]}", fontsize=8)
    counts = [f"{kind} {int(is_significant(rows).sum())}" for kind, rows in shown.groupby("type", sort=False)]
    alt = (
        f"Differences of {len(names)} designs from {reference} on {len(types)} types. Significant: {', '.join(counts)}."
    )
    marks = "blue discs: significant over tasks and seeds; diamonds: over tasks only"
    caption = (
        f"Mean difference from {reference} on each type of task with its {percent(settings.alpha)} interval over tasks"
        f" and, where {FEWEST_SEEDS} are known, seeds, uncorrected; each panel has its own scale; {marks}. {sentence}"
    ).strip()
    return Drawing("design_by_type", "Designs by type of task", caption, figure, alt)
