"""Heat map of all pairwise differences, with marks of significance."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK
from analysis.grids.formats import fraction, signed
from analysis.questions.compared_pairs import pairs_among
from analysis.questions.forest import MINUS
from analysis.questions.question import Material
from analysis.questions.tables import after_correction
from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.correction import passes

MOST = 40  # designs
MOST_WITH_NUMBERS = 12


def heat_map(material: Material) -> Drawing | None:
    """Row minus column, the highest mean on top, so that the upper triangle is positive but for what is marked.

    Number, colour and star are of one statistic, the Hodges-Lehmann difference and its signed-rank test. Where it has
    the other sign than the means, a cell without a number says so by a minus or a plus: no sign rests on colour.
    None with `against=`, where most pairs were not tested, and with two designs, which are one number.
    """
    designs, sentence = material.highest(MOST)
    if material.control or len(designs) < 3:
        return None
    designs = list(material.matrix[designs].mean().sort_values(ascending=False, kind="stable").index)
    names, numbered = short_names(designs), len(designs) <= MOST_WITH_NUMBERS
    cell, label = 0.56 if numbered else 0.2, inches(names.values())
    figure = canvas(label + cell * len(designs) + 1.6, label + cell * len(designs) + 0.7)
    axes = figure.add_subplot()
    values, marks = _cells(material, designs)
    upper = np.triu(np.ones_like(values, dtype=bool), 1)
    turned = (upper & (values < 0)) | (upper.T & (values > 0))  # by the means, which sort the designs
    reach = float(np.abs(values).max()) or 0.01
    shown = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    quads = heat(axes, shown, (-reach, reach), diverging=True, width=0.5)
    axes.set_aspect("equal")
    colour_bar(figure, quads, axes, "row minus column", shrink=0.7)
    axes.set_xticks(range(len(designs)), names.values(), rotation=90)
    axes.set_yticks(range(len(designs)), names.values())
    _texts(axes, values, marks, None if numbered else turned)
    alpha, after = fraction(material.settings.alpha), after_correction(material.settings)
    star = f"* p at most {alpha}{f'{after}; (*) only before it' if after else ''}"
    caption = (
        f"Hodges-Lehmann difference in score over {material.over}, row minus column, designs from the highest"
        f" mean to the lowest; {star}.{_against(int(turned.sum()) // 2, numbered)} {sentence}"
    ).strip()
    significant, total = int((marks == "*").sum()) // 2, math.comb(len(designs), 2)
    alt = f"{significant} of {total} pairs differ significantly. By mean, from high to low: {', '.join(designs[:10])}."
    return Drawing("heat_map", "Pairwise differences", caption, alt, figure)


def _cells(material: Material, designs: list[str]) -> tuple[Floats, NDArray[np.object_]]:
    """Return [row, column]: the Hodges-Lehmann difference, row minus column, and its mark "*", "(*)" or ""."""
    rows = pairs_among(material.pairs_on(material.last), designs)
    first, second = (rows[side].map(designs.index).to_numpy() for side in ("first", "second"))
    values = np.zeros((len(designs), len(designs)))
    values[second, first], values[first, second] = rows["hodges_lehmann"], -rows["hodges_lehmann"]
    marks = np.full(values.shape, "", dtype=object)
    raw_only = np.where(passes(rows["p"], material.settings.alpha), "(*)", "")
    marks[first, second] = marks[second, first] = np.where(rows["significant"], "*", raw_only)
    return values, marks


def _against(count: int, numbered: bool) -> str:
    """Say how many pairs stand against the order of the means, and how they are marked."""
    if not count:
        return ""
    how = "" if numbered else f" ({MINUS} above the diagonal, + below it)"
    return f" In {count} {'pair' if count == 1 else 'pairs'} it has the other sign than the means{how}."


def _texts(axes: Any, values: Floats, marks: NDArray[np.object_], turned: Bools | None) -> None:
    """Write numbers with their marks, or marks alone, with a sign on the cells that are `turned`."""
    for row, column in np.argwhere(~np.eye(len(values), dtype=bool)):
        mark = marks[row, column]
        if turned is None:
            text = f"{signed(values[row, column])}\n{mark}".strip()
        else:
            text = f"{(MINUS if row < column else '+') if turned[row, column] else ''}{mark}"
        if text:
            size = 7 if turned is None else 5
            axes.text(column, row, text, ha="center", va="center", color=BLACK, fontsize=size, linespacing=0.9)
