"""Cells of a heat map: quads, not an image, so that vector files stay sharp."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def heat(axes: Any, values: NDArray[np.float64], reach: tuple[float, float], diverging: bool, width: float) -> Any:
    """Draw values [rows, columns] on a scale from `reach`, nan where there is nothing; the first row is on top.

    diverging: purple and orange about a white centre, since red and green would part no reader; else one colour that
    darkens. Neither has its darkest end, on which no black text can be read. width: of the white lines between cells.
    """
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    name, low, high = ("PuOr_r", 0.16, 0.84) if diverging else ("YlGnBu", 0.0, 0.6)
    rows, columns = values.shape
    colours = ListedColormap(colormaps[name](np.linspace(low, high, 256)))
    x, y = (np.arange(count + 1) - 0.5 for count in (columns, rows))
    lines = {"edgecolors": "white", "linewidth": width}
    quads = axes.pcolormesh(x, y, np.ma.masked_invalid(values), cmap=colours, vmin=reach[0], vmax=reach[1], **lines)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return quads


def colour_bar(figure: Any, quads: Any, axes: Any, label: str, shrink: float) -> Any:
    """Draw the scale beside the axes; return the axis of its numbers."""
    bar = figure.colorbar(quads, ax=axes, shrink=shrink, pad=0.02)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar.ax.yaxis
