"""The score of each task type along a factor that is a number, such as the share of a source of data.

Each design is asked for itself, so its levels on a type are corrected together: with eight tasks per type and all
designs in one family no p could pass.
"""

from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas, legend, panel_axes, score_ticks
from analysis.drawings.drawing import Drawing
from analysis.drawings.style import BLACK, MOST_DESIGNS, mark
from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import compare_pairs, corrected_pairs
from analysis.questions.crossings import Crossing, factor_table, varying
from analysis.questions.question import Answer, Material
from analysis.questions.same_order import crossed
from analysis.questions.tables import claims, marked_cell, rest_text, star_legend

PLACE = 48
FEWEST = 3  # levels: two are a pair, which other tables have
ACROSS = 4  # panels


def answer(material: Material) -> Answer | None:
    """Return each level against the lowest, by design and type; None without a number of three levels."""
    crossing, settings = _crossing(material), material.settings.of_other_tests
    if crossing is None:
        return None
    (factor, levels), (_, cells) = crossing.levels.items()
    order = np.array(crossing.designs).reshape(len(levels), len(cells))
    tables = []
    for cell, designs in zip(cells, order.T.tolist(), strict=True):
        pairs = compare_pairs(
            material.matrix[designs], material.blocks, settings, control=designs[0], frame=material.frame
        )
        tables.append(
            pairs.assign(design_of_curve=cell, level=pairs["second"].map(dict(zip(designs, levels, strict=True))))
        )
    tests = pd.concat(tables, ignore_index=True)
    if settings.family == "table":
        tests = corrected_pairs(tests, settings)
    sentence = _sentence(tests, factor, levels[0])
    rows, numbers = [], settings.numbers
    for (cell, kind), of_curve in tests.groupby(["design_of_curve", "type"], sort=False):
        tested = [marked_cell(numbers.signed(row["difference"]), row, settings) for row in of_curve.to_dict("records")]
        rows.append([Cell(str(cell)), Cell(str(kind)), Cell(numbers.score(of_curve["mean_first"].iloc[0])), *tested])
    caption = (
        f"Mean score at {factor} = {levels[0]} and the mean difference from it at each other level, over the tasks of a"
        " type; below it p of the two-sided signed-rank test, corrected over the levels of a design on a type"
        f"{' and over designs and types' * (settings.family == 'table')}. {star_legend(tests, settings)}. {sentence}"
    )
    head, shown = ["Design", "Type", f"{factor} = {levels[0]}", *map(str, levels[1:])], settings.rows_shown
    grid = Grid(
        "curves", caption, head, rows[:shown], left=2, title=f"Scores by type along {factor}",
        rest=rest_text(shown, len(rows), "rows; curves.csv has all."),
    )  # fmt: skip
    ends = [(order[0, k], order[-1, k]) for k in range(len(cells))]
    return Answer(
        "curves",
        grids=[grid],
        draw=lambda: [_drawing(tests, crossing, material, sentence)],
        frames={"curves": tests},
        about=dict.fromkeys([pair for one, other in ends for pair in ((one, other), (other, one))], sentence),
        of_designs=False,
    )


def _crossing(material: Material) -> Crossing | None:
    """Return the first factor of three numbers or more, in rising order, x the designs that have all of them."""
    factors = varying(factor_table({name: design for name, design in material.designs.items() if design.trained}))
    for name in factors:
        numbers = pd.to_numeric(factors[name], errors="coerce")
        if numbers.notna().all() and numbers.nunique() >= FEWEST:
            crossing = crossed(factors.loc[numbers.sort_values(kind="stable").index], name)
            return crossing if crossing and crossing.levels["design"] else None
    return None


def _sentence(tests: pd.DataFrame, factor: str, lowest: str) -> str:
    """Return per design the types on which a level is told ahead of the lowest one, and behind it."""
    if not claims(tests):
        return f"Along {factor}: no claim about designs."
    parts = []
    for cell, of_curve in tests.groupby("design_of_curve", sort=False):
        told = of_curve[of_curve["told"]]
        sides = {"ahead": told[told["ahead"] > 0], "behind": told[told["ahead"] < 0]}
        texts = {way: [f"{r.type} (at {r.level})" for r in side.itertuples()] for way, side in sides.items()}
        parts.append(
            f"{cell}: ahead on {listed(texts['ahead'] or ['none'])}, behind on {listed(texts['behind'] or ['none'])}"
        )
    return f"Along {factor}, told of each level against {lowest}: {'; '.join(parts)}."


def _drawing(tests: pd.DataFrame, crossing: Crossing, material: Material, sentence: str) -> Drawing:
    """One panel per type, one line per design: the typical difference from the lowest level with its interval."""
    (factor, levels), (_, cells) = crossing.levels.items()
    places, cells = np.array(levels, dtype=np.float64), cells[:MOST_DESIGNS]
    kinds, step = list(material.blocks), 0.012 * float(np.ptp(places))
    across = min(ACROSS, len(kinds))
    figure = canvas(1.9 * across + 0.6, 1.75 * -(-len(kinds) // across) + 0.6)
    grid = panel_axes(figure, len(kinds), across, sharex=True, sharey=True)
    for kind, axes in zip(kinds, grid, strict=True):
        of_type = tests[tests["type"] == kind]
        for k, cell in enumerate(cells):
            _line(axes, of_type[of_type["design_of_curve"] == cell], places + (k - (len(cells) - 1) / 2) * step, k)
        axes.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
        axes.set_title(kind)
        axes.grid(axis="y")
        score_ticks(axes.yaxis, material.settings.numbers)
    figure.supxlabel(factor, fontsize=8)
    looks: dict[str, dict[str, Any]] = {
        cell: {"marker": mark(k).shape, "color": mark(k).colour} for k, cell in enumerate(cells)
    }
    legend(figure, looks, loc="outside upper center", ncols=min(4, len(cells)))
    caption = (
        f"Typical (Hodges-Lehmann) difference in score from {factor} = {levels[0]} over the tasks of each type, with"
        f" its {percent(material.settings.alpha)} interval; filled where it is told. {sentence}"
    )
    return Drawing(
        "curves",
        f"Scores by type along {factor}",
        caption,
        f"Lines of {listed(cells)} over {factor}. {sentence}",
        figure,
    )


def _line(axes: Any, rows: pd.DataFrame, places: Any, k: int) -> None:
    """Draw the differences of one design from its lowest level, which is 0 by definition."""
    look = mark(k)
    middle = np.concatenate([[0.0], rows["hodges_lehmann"]])
    axes.plot(places, middle, color=look.colour, linewidth=1)
    for x, row in zip(places[1:], rows.itertuples(), strict=True):
        if np.isfinite([row.hl_low, row.hl_high]).all():
            axes.vlines(x, row.hl_low, row.hl_high, color=look.colour, linewidth=0.8)
        face = look.colour if row.told else "white"
        axes.plot(x, row.hodges_lehmann, marker=look.shape, color=look.colour, markerfacecolor=face, markersize=4.5)
