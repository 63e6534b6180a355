"""Figures of the pairs: each difference with its interval, over all tasks and by type, and all of them as a heat map.

Mark, place and line are of one statistic: the signed-rank test, its Hodges-Lehmann difference and its interval, which
leaves out 0 exactly where p is at most alpha before the correction. The grey line below is of the second test that a
claim about designs takes, over tasks and seeds: a difference that is told has neither line on 0.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.drawings.canvas import canvas, legend, list_axes, panel_axes, score_ticks
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK, BLUE, GREY, LINE, VERMILLION
from analysis.grids.formats import MINUS, Numbers, fraction, percent, typeset
from analysis.questions.compared_pairs import pairs_among
from analysis.questions.question import Material
from analysis.questions.tables import after_correction, claims, mark_of, star_legend
from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.seeds import FEWEST_SEEDS, reach_of_seeds

LEADING = "forest"  # the figure that the page shows first
MOST_FROM_ONE = 12  # designs beside the one that they are compared with
MOST_PAIRS = 45
MOST_PAIRS_BY_TYPE = 21  # all pairs of seven designs
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
    one = material.control or str(material.matrix.mean().idxmax())
    designs, sentence = material.highest(MOST_FROM_ONE + 1)
    rows = pairs_among(material.pairs_on(material.last), designs)
    rows = _minus(rows[(rows["first"] == one) | (rows["second"] == one)], one)
    names = short_names([one, *rows["second"]])
    labels = list(names.values())[1:]
    caption = _caption(material, f"over {material.over}", f"each minus {one}", sentence)
    return _forest(material, rows, labels, f"difference in score from {names[one]}", caption)


def forest_pairs(material: Material) -> Drawing | None:
    """All pairs over all tasks, or over the only type; None where `forest` shows them all."""
    if material.control or material.matrix.shape[1] < 3:
        return None
    rows, sentence = _pairs(material, MOST_PAIRS)
    shown, label = rows[rows["type"] == material.last], f"difference in score (second {MINUS} first)"
    caption = _caption(material, f"over {material.over}", "second minus first", sentence)
    drawing = _forest(material, shown, _names(rows), label, caption)
    return replace(drawing, name="forest_pairs", title="Differences of all pairs")


def _minus(rows: pd.DataFrame, one: str) -> pd.DataFrame:
    """Return the pairs with `one` as their first design everywhere: the difference is that of the other from it."""
    turned, mirror = (rows["second"] == one).to_numpy(), rows.copy()
    mirror.loc[turned, ["first", "second"]] = rows.loc[turned, ["second", "first"]].to_numpy()
    mirror.loc[turned, ["hl_low", "hl_high"]] = -rows.loc[turned, ["hl_high", "hl_low"]].to_numpy()
    mirror.loc[turned, ["hodges_lehmann", "mean_seeds"]] *= -1
    return mirror


def _forest(material: Material, rows: pd.DataFrame, names: list[str], label: str, caption: str) -> Drawing:
    """One line per pair of `rows`. label: of the axis."""
    width = max(3.0 + inches(names), 0.4 + inches([label]))
    figure = canvas(min(12.0, width), 1.25 + LINE * 1.4 * len(rows))
    axes = figure.add_subplot()
    used = _panel(axes, material, rows, material.last)
    axes.set_xlabel(label, loc="right")
    axes.set_yticks(range(len(rows)), names)
    _legend(figure, material, used)
    best = rows.loc[rows["hodges_lehmann"].abs().idxmax()]
    size = material.settings.numbers.signed(best["hodges_lehmann"])
    alt = (
        f"Differences of {len(rows)} {'pairs' if len(rows) > 1 else 'pair'} over {material.over},"
        f" {int(rows['told'].sum())} told of the designs."
        f" The largest is {size}, {best['second']} minus {best['first']}."
    )
    return Drawing(LEADING, "Differences with intervals", caption, alt, figure)


def forest_by_type(material: Material) -> Drawing | None:
    """The same for each task type, in panels; none where there is one type."""
    if len(material.types) < 2:
        return None
    rows, sentence = _pairs(material, MOST_PAIRS_BY_TYPE)
    names, kinds = _names(rows), list(material.types)
    across = min(len(kinds), 4 if len(kinds) in (4, 7, 8) else 3)
    down = -(-len(kinds) // across)
    figure = canvas(min(14.0, inches(names) + 0.4 + 1.9 * across), 0.7 + down * (0.85 + 1.3 * LINE * len(names)))
    grid = panel_axes(figure, len(kinds), across, sharey=True)
    used: set[str] = set()
    counts = []
    for axes, kind in zip(grid, kinds, strict=True):
        shown = rows[rows["type"] == kind]
        used |= _panel(axes, material, shown, kind)
        counts.append(f"{kind} {int(shown['told'].sum())}")
        axes.set_title(f"{kind} (n = {len(material.types[kind])}){_reach(material, shown)}")
        axes.set_xlabel(f"difference (second {MINUS} first)")
    grid[0].set_yticks(range(len(names)), names)
    for axes in grid[:-across]:
        axes.set_xlabel("")
    _legend(figure, material, used)
    alt = f"One panel per task type, {len(names)} pairs each. Told of the designs: {', '.join(counts)}."
    caption = _caption(material, "by task type, each panel on its own scale", "second minus first", sentence)
    return Drawing("forest_by_type", "Differences by task type", caption, alt, figure)


def _caption(material: Material, where: str, which: str, sentence: str) -> str:
    level, few = percent(material.settings.alpha), FEWEST_SEEDS
    seeds = f"; no interval over seeds, which takes {few} of each design"
    if claims(material.pairs):
        seeds = (
            f"; below it, in grey, the mean difference over tasks and seeds ({few} or more) with its {level} interval"
        )
    return (
        f"Hodges-Lehmann difference in score {where}, {which}, with the {level} interval of the signed-rank test over"
        f" tasks (none where so few have no finite one){seeds}. Intervals are uncorrected. {sentence}"
    ).strip()


def _pairs(material: Material, most: int) -> tuple[pd.DataFrame, str]:
    """The pairs among so many of the highest designs that at most `most` pairs are drawn, and what was left out."""
    count = most + 1 if material.control else int((1 + (1 + 8 * most) ** 0.5) // 2)
    designs, sentence = material.highest(count)
    return pairs_among(material.pairs, designs), sentence


def _names(rows: pd.DataFrame) -> list[str]:
    """One label per pair, in the order of the table."""
    block = rows[rows["type"] == rows["type"].iloc[0]]
    short = short_names(dict.fromkeys([*block["first"], *block["second"]]))
    return [f"{short[b]} {MINUS} {short[a]}" for a, b in zip(block["first"], block["second"], strict=True)]


def _panel(axes: Any, material: Material, rows: pd.DataFrame, kind: str) -> set[str]:
    """Draw one block and return the looks that were used; an end that is infinite is not drawn."""
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
    few = kind in material.types and len(material.types) > 1
    list_axes(axes, len(rows), 4 if few else 7, material.settings.numbers)
    axes.set_xlabel(f"difference in score (second {MINUS} first)")
    return {*looks.tolist(), *(["seeds"] if len(below) else [])}


def _reach(material: Material, rows: pd.DataFrame) -> str:
    """Return the note on what no data with so many tasks could show."""
    if (rows["reachable"] == "yes").any():
        return ""
    after = "" if (rows["reachable"] == "no").all() else after_correction(material.settings)
    return f"\n{fraction(material.settings.alpha)} out of reach{after}"


def _legend(figure: Any, material: Material, used: set[str]) -> None:
    """Below the panels, only what occurs."""
    alpha = fraction(material.settings.alpha)
    before = ", or before the correction" if material.settings.correction != "none" else ""
    words = {
        "told": f"told of the designs (p at most {alpha})",
        "runs": f"of these runs alone{before}",
        "no": f"p above {alpha}",
        "few": f"fewer than {FEWEST_SEEDS} seeds: no claim about designs",
        "never": f"{alpha} out of reach",
        "seeds": "mean over tasks and seeds",
    }
    drawn = LOOKS | {"seeds": OVER_SEEDS}
    looks = {text: {"markersize": 5, "linewidth": 1.3, **drawn[look]} for look, text in words.items() if look in used}
    legend(figure, looks, loc="outside lower center", ncols=min(4, max(1, int(figure.get_figwidth() / 2.4))))


def heat_map(material: Material) -> Drawing | None:
    """Row minus column, the highest mean on top, so that the upper triangle is positive but for what is marked.

    Number, colour and star are of one statistic, the Hodges-Lehmann difference and its signed-rank test. Where it has
    the other sign than the means, a cell without a number says so by a minus or a plus: no sign rests on colour.
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
    upper = np.triu(np.ones_like(values, dtype=bool), 1)
    turned = (upper & (values < 0)) | (upper.T & (values > 0))  # by the means, which sort the designs
    reach = float(np.abs(values).max()) or 0.01
    shown = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    quads = heat(axes, shown, (-reach, reach), diverging=True, width=0.5)
    axes.set_aspect("equal")
    score_ticks(colour_bar(figure, quads, axes, "row minus column", shrink=0.7), material.settings.numbers)
    axes.set_xticks(range(len(designs)), names.values(), rotation=90)
    axes.set_yticks(range(len(designs)), names.values())
    _texts(axes, values, marks, None if numbered else turned, material.settings.numbers)
    star = star_legend(material.pairs, material.settings, behind="")
    caption = (
        f"Hodges-Lehmann difference in score over {material.over}, row minus column, designs from the highest"
        f" mean to the lowest; {star}.{_against(int(turned.sum()) // 2, numbered)} {sentence}"
    ).strip()
    told, total = int((marks == "*").sum()) // 2, math.comb(len(designs), 2)
    alt = f"{told} of {total} pairs are told of the designs. By mean, from high to low: {', '.join(designs[:10])}."
    return Drawing("heat_map", "Pairwise differences", caption, alt, figure)


def _cells(material: Material, designs: list[str]) -> tuple[Floats, NDArray[np.object_]]:
    """Return [row, column]: the Hodges-Lehmann difference, row minus column, and its mark "*", "(*)" or ""."""
    rows = pairs_among(material.pairs_on(material.last), designs)
    first, second = (rows[side].map(designs.index).to_numpy() for side in ("first", "second"))
    values = np.zeros((len(designs), len(designs)))
    values[second, first], values[first, second] = rows["hodges_lehmann"], -rows["hodges_lehmann"]
    marks = np.full(values.shape, "", dtype=object)
    of_rows = [mark_of(row, material.settings) for row in rows.to_dict("records")]
    marks[first, second] = marks[second, first] = of_rows
    return values, marks


def _against(count: int, numbered: bool) -> str:
    """Say how many pairs stand against the order of the means, and how they are marked."""
    if not count:
        return ""
    how = "" if numbered else f" ({MINUS} above the diagonal, + below it)"
    return f" In {count} {'pair' if count == 1 else 'pairs'} it has the other sign than the means{how}."


def _texts(axes: Any, values: Floats, marks: NDArray[np.object_], turned: Bools | None, numbers: Numbers) -> None:
    """Write numbers with their marks, or marks alone, with a sign on the cells that are `turned`."""
    for row, column in np.argwhere(~np.eye(len(values), dtype=bool)):
        mark = marks[row, column]
        if turned is None:
            text = f"{typeset(numbers.signed(values[row, column]))}\n{mark}".strip()
        else:
            text = f"{(MINUS if row < column else '+') if turned[row, column] else ''}{mark}"
        if text:
            size = 7 if turned is None else 5
            axes.text(column, row, text, ha="center", va="center", color=BLACK, fontsize=size, linespacing=0.9)
