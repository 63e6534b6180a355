"""Figures of the pairs: differences from one design with their intervals, and all pairs as a heat map.

Mark, place and line are of one statistic: the signed-rank test, its Hodges-Lehmann difference and its interval, which
leaves out 0 exactly where p is at most alpha before the correction. The grey line below is of the second test that a
claim about designs takes, over tasks and seeds: a difference that is told has neither line on 0.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas, legend, list_axes, score_ticks
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK, BLUE, GREY, LINE, VERMILLION
from analysis.grids.formats import fraction, percent, typeset
from analysis.questions.compared_pairs import pairs_among
from analysis.questions.question import Material
from analysis.questions.tables import claims, mark_of, star_legend
from analysis.statistics.seeds import FEWEST_SEEDS, reach_of_seeds

LEADING = "forest"  # the figure that the page shows first
MOST_FROM_ONE = 12  # designs beside the one that they are compared with
MOST_ON_HEAT_MAP, MOST_WITH_NUMBERS = 40, 12  # designs
BELOW = 0.27  # lines: how far the interval over tasks and seeds lies below that over tasks
# told of the designs, of these runs or before the correction only, not; too few seeds; and where alpha is out of reach
LOOKS: dict[str, dict[str, Any]] = {
    "told": {"marker": "o", "color": BLUE, "markerfacecolor": BLUE},
    "runs": {"marker": "D", "color": VERMILLION, "markerfacecolor": "white"},
    "no": {"marker": "s", "color": BLACK, "markerfacecolor": "white"},
    "few": {"marker": "^", "color": BLACK, "markerfacecolor": "white"},
    "never": {"marker": "x", "color": GREY},
}
OVER_SEEDS: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "marker": "|", "markersize": 4}


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
    _legend(figure, material, _lines(axes, material, rows))
    axes.set_xlabel(label, loc="right")
    axes.set_yticks(range(len(rows)), labels)
    level = percent(settings.alpha)
    seeds = f"; below it, in grey, the mean difference over tasks and seeds with its {level} interval"
    caption = (
        f"Hodges-Lehmann difference in score over {material.over}, each minus {one}, with the {level} interval of the"
        f" signed-rank test over tasks (none where so few have no finite one){seeds * claims(material.pairs)}."
        f" Intervals are uncorrected. {sentence}"
    ).strip()
    alt = f"Differences of {len(rows)} designs from {one}, {int(rows['told'].sum())} told of the designs."
    return Drawing(LEADING, "Differences with intervals", caption, figure, alt)


def _minus(rows: pd.DataFrame, one: str) -> pd.DataFrame:
    """Return the pairs with `one` as their first design everywhere: the difference is that of the other from it."""
    turned, mirror = (rows["second"] == one).to_numpy(), rows.copy()
    mirror.loc[turned, ["first", "second"]] = rows.loc[turned, ["second", "first"]].to_numpy()
    mirror.loc[turned, ["hl_low", "hl_high"]] = -rows.loc[turned, ["hl_high", "hl_low"]].to_numpy()
    mirror.loc[turned, ["hodges_lehmann", "mean_seeds"]] *= -1
    return mirror


def _lines(axes: Any, material: Material, rows: pd.DataFrame) -> set[str]:
    """Draw one line per pair and return the looks that were used; an end that is infinite is not drawn."""
    below = np.flatnonzero(rows["mean_seeds"].notna())
    reach = reach_of_seeds(rows, 1 - material.settings.alpha)
    for place in below:
        mean, half = rows["mean_seeds"].iloc[place], reach[place]
        axes.plot([mean - half, mean, mean + half], [place + BELOW] * 3, markevery=[1], **OVER_SEEDS)
    low, high = (rows[column].where(np.isfinite(rows[column])).to_numpy() for column in ("hl_low", "hl_high"))
    centre = rows["hodges_lehmann"].to_numpy()
    marks = np.array([mark_of(row, material.settings) for row in rows.to_dict("records")])
    conditions = [rows["reachable"] == "no", rows["n_seeds"] < FEWEST_SEEDS, marks == "*", marks == "(*)"]
    looks = np.select(conditions, ["never", "few", "told", "runs"], "no")
    for look in dict.fromkeys(looks.tolist()):  # in an order that no run changes
        places = np.flatnonzero(looks == look)
        axes.hlines(places, low[places], high[places], color=LOOKS[look]["color"], linewidth=1.3)
        axes.plot(centre[places], places, linestyle="none", markersize=5, zorder=3, **LOOKS[look])
    axes.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
    if float(np.nanmax(np.abs([low, high, centre]))) < 1e-9:
        axes.set_xlim(-0.01, 0.01)  # all equal: a scale that says so
    list_axes(axes, len(rows), 7, material.settings.numbers)
    return {*looks.tolist(), *(["seeds"] if len(below) else [])}


def _legend(figure: Any, material: Material, used: set[str]) -> None:
    """Below the panel, only what occurs."""
    alpha = fraction(material.settings.alpha)
    words = {
        "told": f"told of the designs (p at most {alpha})",
        "runs": "of these runs alone, or before the correction",
        "no": f"p above {alpha}",
        "few": f"fewer than {FEWEST_SEEDS} seeds: no claim about designs",
        "never": f"{alpha} out of reach",
        "seeds": "mean over tasks and seeds",
    }
    drawn = LOOKS | {"seeds": OVER_SEEDS}
    looks = {text: {"markersize": 5, "linewidth": 1.3, **drawn[look]} for look, text in words.items() if look in used}
    legend(figure, looks, loc="outside lower center", ncols=min(4, max(1, int(figure.get_figwidth() / 2.4))))


def heat_map(material: Material) -> Drawing | None:
    """Row minus column, the highest mean on top.

    Number, colour and star are of one statistic, the Hodges-Lehmann difference and its signed-rank test. None with
    `against=`, where most pairs were not tested, and with two designs, which are one number.
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
        f"Hodges-Lehmann difference in score over {material.over}, row minus column, designs from the highest"
        f" mean to the lowest; {star_legend(material.pairs, material.settings)}. {sentence}"
    ).strip()
    told, total = int((marks == "*").sum()) // 2, math.comb(len(designs), 2)
    alt = f"{told} of {total} pairs are told of the designs. By mean, from high to low: {', '.join(designs[:10])}."
    return Drawing("heat_map", "Pairwise differences", caption, figure, alt)


def _cells(material: Material, designs: list[str]) -> tuple[Any, Any]:
    """Return [row, column]: the Hodges-Lehmann difference, row minus column, and its mark "*", "(*)" or ""."""
    rows = pairs_among(material.pairs_on(material.last), designs)
    first, second = (rows[side].map(designs.index).to_numpy() for side in ("first", "second"))
    values = np.zeros((len(designs), len(designs)))
    values[second, first], values[first, second] = rows["hodges_lehmann"], -rows["hodges_lehmann"]
    marks = np.full(values.shape, "", dtype=object)
    of_rows = [mark_of(row, material.settings) for row in rows.to_dict("records")]
    marks[first, second] = marks[second, first] = of_rows
    return values, marks
