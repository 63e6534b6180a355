"""Heat map of all pairwise differences, with marks of significance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK
from analysis.grids.formats import fraction, signed
from analysis.questions.forest import MINUS
from analysis.questions.question import Material
from analysis.statistics.arrays import Floats
from analysis.statistics.correction import correction_name, passes

MOST = 40  # designs
MOST_WITH_NUMBERS = 12


def heat_map(material: Material) -> Drawing | None:
    """Row minus column, the highest mean on top, so that the upper triangle is positive but for what is marked.

    Number, colour and star are of one statistic, the Hodges-Lehmann difference and its signed-rank test. Where it has
    the other sign than the means, a cell without a number says so by a minus or a plus: no sign rests on colour.
    None with `against=`, where most pairs were not tested, and with two designs, which are one number.
    """
    from matplotlib.figure import Figure

    designs, sentence = material.highest(MOST)
    if material.control or len(designs) < 3:
        return None
    kind, _ = material.last
    means = material.matrix[designs].mean()
    designs = list(means.sort_values(ascending=False, kind="stable").index)
    names, numbered = short_names(designs), len(designs) <= MOST_WITH_NUMBERS
    cell, label = 0.56 if numbered else 0.2, inches(names.values())
    figure = Figure(
        figsize=(label + cell * len(designs) + 1.6, label + cell * len(designs) + 0.7), layout="constrained"
    )
    axes = figure.add_subplot()
    values = _differences(material, designs)
    _cells(figure, axes, values)
    axes.set_xticks(range(len(designs)), names.values(), rotation=90)
    axes.set_yticks(range(len(designs)), names.values())
    marks = _marks(material, designs)
    _texts(axes, values, marks, numbered)
    alpha, after = fraction(material.settings.alpha), correction_name(material.settings.correction)
    legend = f"* p at most {alpha}" + ("" if not after else f" after {after}; (*) only before it")
    caption = (
        f"Hodges-Lehmann difference in score over {material.over(kind)}, row minus column, designs from the highest"
        f" mean to the lowest; {legend}.{_against(values, numbered)}"
    )
    found = int((marks == "*").sum()) // 2
    total = len(designs) * (len(designs) - 1) // 2
    alt = f"{found} of {total} pairs differ significantly. By mean, from high to low: {', '.join(designs[:10])}."
    return Drawing("heat_map", "Pairwise differences", f"{caption} {sentence}".strip(), alt, figure)


def _differences(material: Material, designs: list[str]) -> Floats:
    """Return [row, column]: the Hodges-Lehmann difference, row minus column."""
    _, rows = material.last
    place = {design: k for k, design in enumerate(designs)}
    rows = rows[rows["first"].isin(designs) & rows["second"].isin(designs)]
    first, second = (rows[side].map(place).to_numpy() for side in ("first", "second"))
    values = np.zeros((len(designs), len(designs)))
    values[second, first], values[first, second] = rows["hodges_lehmann"], -rows["hodges_lehmann"]
    return values


def _turned(values: Floats) -> NDArray[np.bool_]:
    """Return the cells whose sign is not that of the means, by which the designs are sorted."""
    upper = np.triu(np.ones_like(values, dtype=bool), 1)
    return (upper & (values < 0)) | (upper.T & (values > 0))


def _against(values: Floats, numbered: bool) -> str:
    """Say how many pairs stand against the order of the means, and how they are marked."""
    count = int(_turned(values).sum()) // 2
    if not count:
        return ""
    how = "" if numbered else f" ({MINUS} above the diagonal, + below it)"
    return f" In {count} {'pair' if count == 1 else 'pairs'} it has the other sign than the means{how}."


def _marks(material: Material, designs: list[str]) -> NDArray[np.object_]:
    """Return [row, column] -> "*", "(*)" or ""."""
    _, rows = material.last
    rows = rows[rows["first"].isin(designs) & rows["second"].isin(designs)]
    place = {design: k for k, design in enumerate(designs)}
    marks = np.full((len(designs), len(designs)), "", dtype=object)
    raw = passes(rows["p"].to_numpy(), material.settings.alpha)
    for first, second, after, before in zip(rows["first"], rows["second"], rows["significant"], raw, strict=True):
        mark = "*" if after else "(*)" if before else ""
        marks[place[first], place[second]] = marks[place[second], place[first]] = mark
    return marks


def _cells(figure: Any, axes: Any, values: Floats) -> None:
    reach = float(np.abs(values).max()) or 0.01
    shown = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    quads = heat(axes, shown, (-reach, reach), diverging=True, width=0.5)
    axes.set_aspect("equal")
    colour_bar(figure, quads, axes, "row minus column", shrink=0.7)


def _texts(axes: Any, values: Floats, marks: NDArray[np.object_], numbered: bool) -> None:
    turned = _turned(values)
    for row, column in np.argwhere(~np.eye(len(values), dtype=bool)):
        text = marks[row, column]
        if numbered:
            text = f"{signed(values[row, column])}\n{text}" if text else signed(values[row, column])
        elif turned[row, column]:
            text = f"{MINUS if row < column else '+'}{text}"
        if text:
            axes.text(
                column, row, text, ha="center", va="center", color=BLACK, fontsize=7 if numbered else 5, linespacing=0.9
            )
