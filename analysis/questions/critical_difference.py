"""Critical-difference diagram: mean ranks on a line, bars over designs that do not differ (Demsar 2006, figure 1)."""

from typing import Any

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
    found = ranks.critical_difference(material.matrix, material.settings.alpha, material.settings.decimals)
    return [diagram(found, material.over(material.last[0]))]


def diagram(ranked: CriticalDifference, where: str) -> Drawing:
    """Draw the best `MOST` designs; the better half is named on the left."""
    from matplotlib.figure import Figure

    order = sorted(ranked.ranks, key=lambda name: ranked.ranks[name])
    shown = order[:MOST]
    names, left = short_names(shown), -(-len(shown) // 2)
    bars = _bars(ranked, shown)
    lines = 1.6 + STEP * len(bars) + left  # head, bars, names
    sides = inches(names.values()) + 0.45
    figure = Figure(figsize=(2 * sides + 4.0, 0.35 + LINE * 1.15 * (lines + 1.9)), layout="constrained")
    axes = figure.add_subplot()
    low, high = _range(ranked, shown)
    _scale(axes, ranked, low, high, sides)
    _draw_bars(axes, ranked, bars)
    first = 0.9 + STEP * len(bars)
    for k, name in enumerate(shown):
        own = k if k < left else len(shown) - 1 - k
        _name(axes, names[name], ranked.ranks[name], first + own, low if k < left else high)
    axes.set_ylim(first + left - 0.3, -2.4)
    cut = f"Of {len(order)} designs the {len(shown)} of the best rank are drawn." if len(order) > len(shown) else ""
    caption = (
        f"Mean ranks over {where} (1 is best). Bars join designs whose ranks differ by less than the critical"
        f" difference at {fraction(ranked.alpha)}, {ranked.cd:.2f}."
    )
    ranks = ", ".join(f"{name} {ranked.ranks[name]:.2f}" for name in shown[:10])
    alt = f"Mean ranks from best to worst: {ranks}. Critical difference {ranked.cd:.2f}."
    return Drawing("critical_difference", "Critical-difference diagram", f"{caption} {cut}".strip(), alt, figure)


def _bars(ranked: CriticalDifference, shown: list[str]) -> list[list[str]]:
    """The sets of two and more among what is drawn, those of the best ranks first."""
    sets = [[name for name in shown if name in clique] for clique in ranked.cliques]
    kept = {tuple(own) for own in sets if len(own) > 1}
    maximal = [own for own in kept if not any(set(own) < set(other) for other in kept)]
    return sorted(map(list, maximal), key=lambda own: ranked.ranks[own[0]])


def _range(ranked: CriticalDifference, shown: list[str]) -> tuple[float, float]:
    """The ends of the scale: all ranks where all designs are drawn; at least one rank, and the bar must fit in."""
    ranks = [ranked.ranks[name] for name in shown]
    low, high = (1.0, float(len(ranked.ranks))) if len(shown) == len(ranked.ranks) else (min(ranks) - 0.5, max(ranks))
    return low, max(high, low + 1.05 * ranked.cd, low + 1.0)


def _scale(axes: Any, ranked: CriticalDifference, low: float, high: float, sides: float) -> None:
    """The line of ranks on top with the length of the critical difference above it."""
    width = high - low
    margin = width * sides / 4.0
    axes.set_xlim(low - margin, high + margin)
    axes.axis("off")
    axes.plot([low, high], [0, 0], color=BLACK, linewidth=1)
    from matplotlib.ticker import MaxNLocator

    ticks = [t for t in MaxNLocator(nbins=8, integer=width >= 3).tick_values(low, high) if low <= t <= high]
    for tick in ticks:
        axes.plot([tick, tick], [0, -0.22], color=BLACK, linewidth=1)
        axes.text(tick, -0.35, f"{tick:g}", ha="center", va="bottom")
    axes.plot([low, low + ranked.cd], [-1.6, -1.6], color=BLACK, linewidth=1.6)
    for end in (low, low + ranked.cd):
        axes.plot([end, end], [-1.45, -1.75], color=BLACK, linewidth=1)
    axes.text(low + ranked.cd / 2, -1.75, f"critical difference {ranked.cd:.2f}", ha="center", va="bottom")


def _draw_bars(axes: Any, ranked: CriticalDifference, bars: list[list[str]]) -> None:
    for k, own in enumerate(bars):
        ends = ranked.ranks[own[0]], ranked.ranks[own[-1]]
        reach = 0.004 * (axes.get_xlim()[1] - axes.get_xlim()[0])
        height = 0.45 + STEP * k
        axes.plot([ends[0] - reach, ends[1] + reach], [height, height], color=BLUE, linewidth=3, solid_capstyle="butt")


def _name(axes: Any, name: str, rank: float, height: float, side: float) -> None:
    """A line from the scale down to the name's height and out to its side."""
    axes.plot([rank, rank, side], [0, height, height], color=GREY, linewidth=0.8, zorder=0)
    axes.plot([rank], [0], marker="o", markersize=3, color=BLACK)
    left = side <= rank
    pad = -4 if left else 4
    axes.annotate(
        f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}", (side, height), xytext=(pad, 0),
        textcoords="offset points", ha="right" if left else "left", va="center",
    )  # fmt: skip
