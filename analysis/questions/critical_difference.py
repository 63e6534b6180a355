"""Critical-difference diagram: mean ranks on a line, bars over designs that do not differ (Demsar 2006, figure 1)."""

from typing import Any

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, BLUE, GREY, LINE
from analysis.grids.formats import fraction
from analysis.questions.question import Material
from analysis.statistics import ranks
from analysis.statistics.ranks import CriticalDifference

MOST = 30  # designs
STEP = 0.42  # between bars, in units of a line of names


def critical_difference(material: Material) -> list[Drawing]:
    """Return none with two designs, whose ranks say what the test of the pair says."""
    if len(material.matrix.columns) < 3:
        return []
    ranked = ranks.critical_difference(material.matrix, material.settings.alpha, material.settings.decimals)
    return [diagram(ranked, material.over)]


def diagram(ranked: CriticalDifference, where: str) -> Drawing:
    """Draw the best `MOST` designs; the better half is named on the left."""
    order = sorted(ranked.ranks, key=lambda name: ranked.ranks[name])
    shown = order[:MOST]
    names, left = short_names(shown), -(-len(shown) // 2)
    bars = _bars(ranked, shown)
    lines = 1.6 + STEP * len(bars) + left  # head, bars, names
    sides = inches(names.values()) + 0.45
    figure = canvas(2 * sides + 4.0, 0.35 + LINE * 1.15 * (lines + 1.9))
    axes = figure.add_subplot()
    low, high = _range(ranked, shown)
    _scale(axes, ranked, low, high, sides)
    reach = 0.004 * (axes.get_xlim()[1] - axes.get_xlim()[0])
    for k, bar in enumerate(bars):
        height, first, last = 0.45 + STEP * k, ranked.ranks[bar[0]], ranked.ranks[bar[-1]]
        axes.plot([first - reach, last + reach], [height] * 2, color=BLUE, linewidth=3, solid_capstyle="butt")
    top = 0.9 + STEP * len(bars)
    for k, name in enumerate(shown):
        line = k if k < left else len(shown) - 1 - k
        _name(axes, names[name], ranked.ranks[name], top + line, low if k < left else high)
    axes.set_ylim(top + left - 0.3, -2.4)
    cut = f"Of {len(order)} designs the {len(shown)} of the best rank are drawn." if len(order) > len(shown) else ""
    caption = (
        f"Mean ranks over {where} (1 is best). Bars join designs whose ranks differ by less than the critical"
        f" difference at {fraction(ranked.alpha)}, {ranked.cd:.2f}. {cut}"
    ).strip()
    best = ", ".join(f"{name} {ranked.ranks[name]:.2f}" for name in shown[:10])
    alt = f"Mean ranks from best to worst: {best}. Critical difference {ranked.cd:.2f}."
    return Drawing("critical_difference", "Critical-difference diagram", caption, alt, figure)


def _bars(ranked: CriticalDifference, shown: list[str]) -> list[list[str]]:
    """The sets of two and more among what is drawn, those of the best ranks first."""
    sets = dict.fromkeys(tuple(name for name in shown if name in clique) for clique in ranked.cliques)
    kept = [names for names in sets if len(names) > 1 and not any(set(names) < set(other) for other in sets)]
    return sorted(map(list, kept), key=lambda names: ranked.ranks[names[0]])


def _range(ranked: CriticalDifference, shown: list[str]) -> tuple[float, float]:
    """The ends of the scale: all ranks where all designs are drawn; at least one rank, and the bar must fit in."""
    low, high = 1.0, float(len(ranked.ranks))
    if len(shown) < len(ranked.ranks):
        low, high = ranked.ranks[shown[0]] - 0.5, ranked.ranks[shown[-1]]
    return low, max(high, low + 1.05 * ranked.cd, low + 1.0)


def _scale(axes: Any, ranked: CriticalDifference, low: float, high: float, sides: float) -> None:
    """The line of ranks on top with the length of the critical difference above it."""
    from matplotlib.ticker import MaxNLocator

    width = high - low
    margin = width * sides / 4.0
    axes.set_xlim(low - margin, high + margin)
    axes.axis("off")
    axes.plot([low, high], [0, 0], color=BLACK, linewidth=1)
    ticks = [t for t in MaxNLocator(nbins=8, integer=width >= 3).tick_values(low, high) if low <= t <= high]
    for tick in ticks:
        axes.plot([tick, tick], [0, -0.22], color=BLACK, linewidth=1)
        axes.text(tick, -0.35, f"{tick:g}", ha="center", va="bottom")
    axes.plot([low, low + ranked.cd], [-1.6, -1.6], color=BLACK, linewidth=1.6)
    for end in (low, low + ranked.cd):
        axes.plot([end, end], [-1.45, -1.75], color=BLACK, linewidth=1)
    axes.text(low + ranked.cd / 2, -1.75, f"critical difference {ranked.cd:.2f}", ha="center", va="bottom")


def _name(axes: Any, name: str, rank: float, height: float, side: float) -> None:
    """A line from the scale down to the name's height and out to its side."""
    axes.plot([rank, rank, side], [0, height, height], color=GREY, linewidth=0.8, zorder=0)
    axes.plot([rank], [0], marker="o", markersize=3, color=BLACK)
    text, pad, where = (f"{name}  {rank:.2f}", -4, "right") if side <= rank else (f"{rank:.2f}  {name}", 4, "left")
    axes.annotate(text, (side, height), (pad, 0), textcoords="offset points", ha=where, va="center")
