"""Figures of the pairs: differences from one design with their intervals, and all pairs as a heat map.

Place and line are of one statistic: the mean difference and its interval over tasks and seeds, which leaves out 0
exactly where p is at most alpha before the correction.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas, legend, list_axes, score_ticks
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK, BLUE, LINE, VERMILLION
from analysis.grids.formats import percent, typeset
from analysis.questions.compared_pairs import is_significant, pairs_among
from analysis.questions.question import Material
from analysis.questions.tables import DAGGER, mark_of, star_legend
from analysis.statistics.seeds import FEWEST_SEEDS

LEADING = "forest"  # the figure that the page shows first
MOST_FROM_ONE = 12  # designs beside the one that they are compared with
MOST_ON_HEAT_MAP, MOST_WITH_NUMBERS = 40, 12  # designs
LOOKS: dict[str, dict[str, Any]] = {
    "*": {"marker": "o", "color": BLUE, "markerfacecolor": BLUE},
    DAGGER: {"marker": "D", "color": VERMILLION, "markerfacecolor": "white"},
    "": {"marker": "s", "color": BLACK, "markerfacecolor": "white"},
}


def forest(material: Material) -> Drawing:
    """Each design against the control, or against the highest mean, over all tasks or over the only type."""
    one, settings = material.control or str(material.matrix.mean().idxmax()), material.settings
    designs, sentence = material.highest(MOST_FROM_ONE + 1)
    rows = pairs_among(material.pairs_on(material.last), designs)
    rows = _minus(rows[(rows["first"] == one) | (rows["second"] == one)], one)
    names = short_names([one, *rows["second"]])
    labels, label = list(names.values())[1:], f"difference in score from {names[one]}"
    width = max(3.0 + inches(labels), 0.4 + inches([label]))
    figure = canvas(min(12.0, width), 1.25 + LINE * 1.4 * len(rows))
    axes = figure.add_subplot()
    _legend(figure, _lines(axes, material, rows))
    axes.set_xlabel(label, loc="right")
    axes.set_yticks(range(len(rows)), labels)
    level = percent(settings.alpha)
    seeds = f" and seeds (over tasks only with fewer than {FEWEST_SEEDS} seeds)"
    caption = (
        f"Mean difference in score over {material.over}, each minus {one}, with the {level} interval over tasks{seeds}."
        f" Intervals are uncorrected. {sentence}"
    ).strip()
    alt = f"Differences of {len(rows)} designs from {one}, {int(is_significant(rows).sum())} significant."
    return Drawing(LEADING, "Differences with intervals", caption, figure, alt)


def _minus(rows: pd.DataFrame, one: str) -> pd.DataFrame:
    """Return the pairs with `one` as their first design everywhere: the difference is that of the other from it."""
    turned, mirror = (rows["second"] == one).to_numpy(), rows.copy()
    mirror.loc[turned, ["first", "second"]] = rows.loc[turned, ["second", "first"]].to_numpy()
    mirror.loc[turned, ["low", "high"]] = -rows.loc[turned, ["high", "low"]].to_numpy()
    mirror.loc[turned, "mean_difference"] *= -1
    return mirror


def _lines(axes: Any, material: Material, rows: pd.DataFrame) -> list[str]:
    """Draw one line per pair and return the marks that were used; an end that is not known is not drawn."""
    low, high, centre = (rows[column].to_numpy() for column in ("low", "high", "mean_difference"))
    marks = np.array(list(map(mark_of, rows.to_dict("records"))))
    used = list(dict.fromkeys(marks.tolist()))  # in an order that no run changes
    for mark in used:
        places = np.flatnonzero(marks == mark)
        axes.hlines(places, low[places], high[places], color=LOOKS[mark]["color"], linewidth=1.3)
        axes.plot(centre[places], places, linestyle="none", markersize=5, zorder=3, **LOOKS[mark])
    axes.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
    if float(np.nanmax(np.abs([low, high, centre]))) < 1e-9:
        axes.set_xlim(-0.01, 0.01)  # all equal: a scale that says so
    list_axes(axes, len(rows), 7, material.settings.numbers)
    return used


def _legend(figure: Any, used: list[str]) -> None:
    """Below the panel, only what occurs."""
    words = {"*": "significant over tasks and seeds", DAGGER: "significant over tasks only", "": "not significant"}
    looks = {words[mark]: {"markersize": 5, "linewidth": 1.3, **LOOKS[mark]} for mark in LOOKS if mark in used}
    legend(figure, looks, loc="outside lower center", ncols=min(4, max(1, int(figure.get_figwidth() / 2.4))))


def heat_map(material: Material) -> Drawing | None:
    """Row minus column, the highest mean on top.

    None with `against=`, where most pairs were not tested, and with two designs, which are one number.
    """
    designs, sentence = material.highest(MOST_ON_HEAT_MAP)
    if material.control or len(designs) < 3:
        return None
    designs = list(material.matrix[designs].mean().sort_values(ascending=False, kind="stable").index)
    names, numbered = short_names(designs), len(designs) <= MOST_WITH_NUMBERS
    cell, label = 0.56 if numbered else 0.2, inches(names.values())
    figure = canvas(label + cell * len(designs) + 1.6, label + cell * len(designs) + 0.7)
    axes = figure.add_subplot()
    values, marks = _cells(material, designs)
    reach = float(np.abs(values).max()) or 0.01
    shown = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    quads = heat(axes, shown, (-reach, reach), diverging=True, width=0.5)
    axes.set_aspect("equal")
    score_ticks(colour_bar(figure, quads, axes, "row minus column", shrink=0.7), material.settings.numbers)
    axes.set_xticks(range(len(designs)), names.values(), rotation=90)
    axes.set_yticks(range(len(designs)), names.values())
    for row, column in np.argwhere(~np.eye(len(values), dtype=bool)):
        number = typeset(material.settings.numbers.signed(values[row, column])) + "\n" if numbered else ""
        text, size = f"{number}{marks[row, column]}".strip(), 7 if numbered else 5
        axes.text(column, row, text, ha="center", va="center", color=BLACK, fontsize=size, linespacing=0.9)
    caption = (
        f"Mean difference in score over {material.over}, row minus column, designs from the highest"
        f" mean to the lowest; {star_legend(material.pairs, material.settings)}. {sentence}"
    ).strip()
    found, total = int((marks == "*").sum()) // 2, math.comb(len(designs), 2)
    alt = f"{found} of {total} pairs are significant. By mean, from high to low: {', '.join(designs[:10])}."
    return Drawing("heat_map", "Pairwise differences", caption, figure, alt)


def _cells(material: Material, designs: list[str]) -> tuple[Any, Any]:
    """Return [row, column]: the mean difference, row minus column, and its mark."""
    rows = pairs_among(material.pairs_on(material.last), designs)
    first, second = (rows[side].map(designs.index).to_numpy() for side in ("first", "second"))
    values = np.zeros((len(designs), len(designs)))
    values[second, first], values[first, second] = rows["mean_difference"], -rows["mean_difference"]
    marks = np.full(values.shape, "", dtype=object)
    of_rows = [mark_of(row) for row in rows.to_dict("records")]
    marks[first, second] = marks[second, first] = of_rows
    return values, marks
