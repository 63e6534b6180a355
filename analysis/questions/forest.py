"""Forest plots: each pair's difference with its interval, over all tasks and by task type.

Mark, place and line are of one statistic: the signed-rank test, its Hodges-Lehmann difference and its interval, which
leaves out 0 exactly where the mark says that p is at most alpha before the correction.
"""

from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, BLUE, GREY, LINE
from analysis.grids.formats import fraction, percent, signed
from analysis.questions.question import Material
from analysis.statistics.arrays import Floats
from analysis.statistics.correction import correction_name, passes

MINUS = "\N{MINUS SIGN}"
MOST_PAIRS = 45
MOST_PAIRS_BY_TYPE = 21  # all pairs of seven designs
# filling: significant after the correction, before it only, not; and where alpha cannot be reached
LOOKS: dict[str, dict[str, Any]] = {
    "after": {"marker": "o", "color": BLUE, "markerfacecolor": BLUE},
    "before": {"marker": "D", "color": BLUE, "markerfacecolor": "white"},
    "no": {"marker": "o", "color": BLACK, "markerfacecolor": "white"},
    "never": {"marker": "x", "color": GREY},
}


def forest(material: Material) -> Drawing | None:
    """All pairs over all tasks, or over the only type."""
    from matplotlib.figure import Figure

    kind, _ = material.last
    rows, sentence = _pairs(material, MOST_PAIRS)
    own, names = rows[rows["type"] == kind], _names(rows)
    height = 1.25 + LINE * 1.15 * len(own)
    figure = Figure(figsize=(min(12.0, 4.2 + inches(names)), height), layout="constrained")
    axes = figure.add_subplot()
    used = _panel(axes, material, own, kind)
    axes.set_yticks(range(len(own)), names)
    _legend(figure, material, used)
    best = own.loc[own["hodges_lehmann"].abs().idxmax()]
    alt = (
        f"Differences of {len(own)} {'pairs' if len(own) > 1 else 'pair'} over {material.over(kind)},"
        f" {int(own['significant'].sum())} significant."
        f" The largest is {signed(best['hodges_lehmann'])}, {best['second']} minus {best['first']}."
    )
    caption = _caption(material, f"over {material.over(kind)}")
    return Drawing("forest", "Differences with intervals", f"{caption} {sentence}".strip(), alt, figure)


def forest_by_type(material: Material) -> Drawing | None:
    """The same for each task type, in panels; none where there is one type."""
    from matplotlib.figure import Figure

    if len(material.types) < 2:
        return None
    rows, sentence = _pairs(material, MOST_PAIRS_BY_TYPE)
    names, kinds = _names(rows), list(material.types)
    across = min(len(kinds), 4 if len(kinds) in (4, 7, 8) else 3)
    down = -(-len(kinds) // across)
    height = 0.7 + down * (0.85 + LINE * len(names))
    figure = Figure(figsize=(min(14.0, inches(names) + 0.4 + 1.9 * across), height), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    used: set[str] = set()
    for axes, kind in zip(grid, kinds, strict=False):
        used |= _panel(axes, material, rows[rows["type"] == kind], kind)
        axes.set_title(f"{kind} (n = {len(material.types[kind])}){_reach(material, rows[rows['type'] == kind])}")
        axes.tick_params(labelbottom=True)
        axes.set_xlabel(f"difference (second {MINUS} first)")
    for axes in grid[len(kinds) :]:
        axes.set_visible(False)
    grid[0].set_yticks(range(len(names)), names)
    for axes in grid[: len(kinds) - across]:
        axes.set_xlabel("")
    _legend(figure, material, used)
    counts = [f"{kind} {int(rows.loc[rows['type'] == kind, 'significant'].sum())}" for kind in kinds]
    alt = f"One panel a task type, {len(names)} pairs each. Significant after the correction: {', '.join(counts)}."
    caption = _caption(material, "by task type")
    return Drawing("forest_by_type", "Differences by task type", f"{caption} {sentence}".strip(), alt, figure)


def _caption(material: Material, where: str) -> str:
    return (
        f"Hodges-Lehmann difference in score {where}, second minus first, with the {percent(material.settings.alpha)}"
        " interval of the signed-rank test, uncorrected (none where so few tasks have no finite one)."
    )


def _pairs(material: Material, most: int) -> tuple[pd.DataFrame, str]:
    """The pairs among so many of the highest designs that at most `most` pairs are drawn, and what was left out."""
    count = most + 1 if material.control else int((1 + (1 + 8 * most) ** 0.5) // 2)
    designs, sentence = material.highest(count)
    rows = material.pairs
    return rows[rows["first"].isin(designs) & rows["second"].isin(designs)], sentence


def _names(rows: pd.DataFrame) -> list[str]:
    """One label a pair, in the order of the table."""
    own = rows[rows["type"] == rows["type"].iloc[0]]
    short = short_names(dict.fromkeys([*own["first"], *own["second"]]))
    return [f"{short[b]} {MINUS} {short[a]}" for a, b in zip(own["first"], own["second"], strict=True)]


def _panel(axes: Any, material: Material, rows: pd.DataFrame, kind: str) -> set[str]:
    """Draw one block and return the looks that were used."""
    low, high = (_finite(rows[column].to_numpy()) for column in ("hl_low", "hl_high"))
    centre, looks = rows["hodges_lehmann"].to_numpy(), _looks(material, rows)
    for look in dict.fromkeys(looks):  # in an order that no run changes
        places = np.flatnonzero(np.array(looks) == look)
        axes.hlines(places, low[places], high[places], color=LOOKS[look]["color"], linewidth=1.3)
        axes.plot(centre[places], places, linestyle="none", markersize=5, zorder=3, **LOOKS[look])
    axes.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
    if float(np.nanmax(np.abs([low, high, centre]))) < 1e-9:
        axes.set_xlim(-0.01, 0.01)  # all equal: a scale that says so
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=4 if kind in material.types and len(material.types) > 1 else 7)
    axes.set_xlabel(f"difference in score (second {MINUS} first)")
    return set(looks)


def _finite(ends: Floats) -> Floats:
    """An end that is infinite is not drawn."""
    return np.where(np.isfinite(ends), ends, np.nan)


def _reach(material: Material, rows: pd.DataFrame) -> str:
    """Return the note on what no data with so many tasks could show."""
    if (rows["reachable"] == "yes").any():
        return ""
    after = "" if (rows["reachable"] == "no").all() else f" after {correction_name(material.settings.correction)}"
    return f"\n{fraction(material.settings.alpha)} out of reach{after}"


def _looks(material: Material, rows: pd.DataFrame) -> list[str]:
    alpha = material.settings.alpha
    raw = passes(rows["p"].to_numpy(), alpha)
    never = (rows["reachable"] == "no").to_numpy()
    return [
        "after" if s else "before" if r else "never" if n else "no"
        for s, r, n in zip(rows["significant"], raw, never, strict=True)
    ]


def _legend(figure: Any, material: Material, used: set[str]) -> None:
    """Below the panels, only what occurs."""
    from matplotlib.lines import Line2D

    alpha, correction = fraction(material.settings.alpha), correction_name(material.settings.correction)
    after = f" after {correction}" if correction else ""
    words = {
        "after": f"p at most {alpha}{after}",
        "before": f"p at most {alpha} only before the correction",
        "no": f"p above {alpha}",
        "never": f"{alpha} out of reach",
    }
    handles = [Line2D([], [], markersize=5, linewidth=1.3, **LOOKS[k], label=words[k]) for k in words if k in used]
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if figure.get_figwidth() < 7 else 4)
