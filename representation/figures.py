"""Figures of several sections: small heat maps on one scale, and the look of a line."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.drawings.canvas import canvas, panel_axes
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK, mark
from analysis.statistics.arrays import Floats

MOST_PANELS = 12
MOST_NUMBERS = 110  # cells of a panel with their numbers in them
ACROSS = 3


def look(k: int, size: float, width: float = 1.2) -> dict[str, Any]:
    """Return how matplotlib draws the k-th line; size: of its marks, width: of the line, 0 for marks alone."""
    style: dict[str, Any] = {"linewidth": width} if width else {"linestyle": "none"}
    return {"color": mark(k).colour, "marker": mark(k).shape, "markersize": size, **style}


def tables_of(frame: pd.DataFrame, rows: str, columns: str, values: str) -> dict[str, pd.DataFrame]:
    """Return encoder -> [rows, columns] of a long table in its order, the mean over seeds."""
    tables = {}
    for encoder, part in frame.groupby("encoder", sort=False):
        means = part.groupby([rows, columns])[values].mean().unstack()
        tables[str(encoder)] = means.loc[part[rows].unique(), part[columns].unique()]
    return tables


def heat_panels(
    frame: pd.DataFrame,
    keys: tuple[str, str, str],
    axes: tuple[str, str],
    scale: str,
    *,
    centre: float | None = None,
) -> Figure:
    """Draw the tables of `tables_of`, the first twelve, on one scale, nan where there is nothing.

    keys: rows, columns and values in `frame`; axes: what rows and columns are; scale: what the values are.
    centre: the value that is white, on either side of which colours differ; None: one colour that darkens.
    """
    shown = dict(list(tables_of(frame, *keys).items())[:MOST_PANELS])
    names = short_names(shown)
    across = 2 if len(shown) == 4 else min(ACROSS, len(shown))
    down = -(-len(shown) // across)
    high, wide = (max(table.shape[axis] for table in shown.values()) for axis in (0, 1))
    label = inches(str(row) for table in shown.values() for row in table.index)
    numbered = high * wide <= MOST_NUMBERS
    width = across * (wide * (0.36 if numbered else 0.14) + label + 0.5) + 1.0
    height = down * (high * (0.22 if numbered else 0.1) + 0.9)
    figure = canvas(min(14.0, width), min(18.0, height))
    grid = panel_axes(figure, len(shown), across)
    reach = _reach(np.concatenate([table.to_numpy().ravel() for table in shown.values()]), centre)
    for panel, (name, table) in zip(grid, shown.items(), strict=True):
        mesh = heat(panel, table.to_numpy(), reach, diverging=centre is not None, width=0.4)
        panel.set_title(names[name])
        every = max(1, len(table) // 16)  # a label for each row of a small map, for some of a large one
        panel.set_yticks(range(0, len(table), every), table.index[::every])
        panel.set_xticks(range(table.shape[1]), table.columns, rotation=90)
        if numbered:
            _numbers(panel, table.to_numpy(), centre == 0)
    for panel in grid[::across]:
        panel.set_ylabel(axes[0])
    for panel in grid[-across:]:
        panel.set_xlabel(axes[1])
    colour_bar(figure, mesh, figure.axes, scale, shrink=0.8)
    return figure


def _reach(values: Floats, centre: float | None) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    if centre is not None:
        far = float(np.abs(values - centre).max()) or 0.01
        return centre - far, centre + far
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.01, high + 0.01)


def _numbers(axes: Axes, values: Floats, signs: bool) -> None:
    """Write every finite value of [rows, columns] into its cell."""
    for row, column in np.argwhere(np.isfinite(values)):
        text = f"{values[row, column]:{'+' if signs else ''}.2f}"
        axes.text(column, row, text, ha="center", va="center", color=BLACK, fontsize=6)
