"""Figures: their words and style, legends, and small heat maps next to one another on one scale."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing, drawn
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK
from analysis.grids.formats import score, signed
from analysis.statistics.arrays import Floats

MOST_PANELS = 12
MOST_NUMBERS = 110  # cells of a panel with their numbers in them
ACROSS = 3


@dataclass(frozen=True)
class Words:
    """Name of the file, heading, caption and description of a figure that is yet to be drawn; see `Drawing`."""

    name: str
    title: str
    caption: str
    alt: str

    def drawing(self, figure: Figure, left_out: Iterable[str] = ()) -> Drawing:
        """Return the figure with its words. left_out: names that found no room, which the caption then lists."""
        names = "; ".join(left_out)
        caption = f"{self.caption} Not drawn: {names}." if names else self.caption
        return Drawing(self.name, self.title, caption, self.alt, figure)


def styled(labels: Iterable[str], make: Callable[[], Drawing]) -> Drawing:
    """Return the drawing that `make` draws, its layout settled. labels: names whose letters need a font."""
    return drawn(labels, lambda: [make()])[0]


def legend(
    figure: Figure, axes: Axes, place: Any = "outside right upper", most: int | None = None, **look: Any
) -> None:
    """Put the legend of one panel next to all of them; most: of its entries."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles[:most], names[:most], loc=place, **look)


@dataclass(frozen=True)
class Panel:
    """values: [rows, columns], nan where there is nothing."""

    values: Floats
    rows: list[str]
    columns: list[str]


@dataclass(frozen=True)
class Look:
    """Names of the axes and of the scale. centre: the value that is white, on either side of which colours differ;
    None: one colour that darkens. digits: of the numbers in the cells."""

    rows: str
    columns: str
    scale: str
    centre: float | None = None
    digits: int = 2


def heat_panels(words: Words, panels: Mapping[str, Panel], look: Look) -> Drawing:
    """At most twelve panels on a scale that all share; the caption names what is left out."""
    return styled(panels, lambda: _drawn(words, panels, look))


def _drawn(words: Words, panels: Mapping[str, Panel], look: Look) -> Drawing:
    shown = dict(list(panels.items())[:MOST_PANELS])
    names = short_names(shown)
    across = 2 if len(shown) == 4 else min(ACROSS, len(shown))
    down = -(-len(shown) // across)
    high, wide = (max(p.values.shape[axis] for p in shown.values()) for axis in (0, 1))
    label = inches(row for p in shown.values() for row in p.rows)
    numbered = high * wide <= MOST_NUMBERS
    width = across * (wide * (0.36 if numbered else 0.14) + label + 0.5) + 1.0
    height = down * (high * (0.22 if numbered else 0.1) + 0.9)
    figure = Figure(figsize=(min(14.0, width), min(18.0, height)), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).ravel()
    reach = _reach(list(shown.values()), look)
    for axes, (name, panel) in zip(grid, shown.items(), strict=False):
        mesh = heat(axes, panel.values, reach, diverging=look.centre is not None, width=0.4)
        axes.set_title(names[name])
        every = max(1, len(panel.rows) // 16)  # a label for each row of a small map, for some of a large one
        axes.set_yticks(range(0, len(panel.rows), every), panel.rows[::every])
        axes.set_xticks(range(len(panel.columns)), panel.columns, rotation=90)
        if numbered:
            numbers(axes, panel.values, lambda x: signed(x, look.digits) if look.centre == 0 else score(x, look.digits))
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    for axes in grid[::across]:
        axes.set_ylabel(look.rows)
    for axes in grid[max(0, len(shown) - across) : len(shown)]:
        axes.set_xlabel(look.columns)
    colour_bar(figure, mesh, list(grid), look.scale, shrink=0.8)
    return words.drawing(figure, list(panels)[MOST_PANELS:])


def _reach(panels: list[Panel], look: Look) -> tuple[float, float]:
    values = np.concatenate([panel.values.ravel() for panel in panels])
    values = values[np.isfinite(values)]
    if look.centre is not None:
        far = float(np.abs(values - look.centre).max()) or 0.01
        return look.centre - far, look.centre + far
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.01, high + 0.01)


def numbers(axes: Any, values: Floats, form: Callable[[float], str], size: float = 6) -> None:
    """Write every finite value of [rows, columns] into its cell."""
    for row, column in np.argwhere(np.isfinite(values)):
        text = form(float(values[row, column]))
        axes.text(column, row, text, ha="center", va="center", color=BLACK, fontsize=size)
