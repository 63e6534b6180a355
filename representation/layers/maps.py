"""Heat maps of how alike the layers of a decoder are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.figures.drawing import Drawing
from analysis.figures.fit import short_names
from analysis.figures.style import BLACK, house_style

MEASURES = {"cka": "linear CKA", "cosine": "mean cosine"}
PANEL = 1.55  # inches
MOST = 12  # decoders
MOST_WITH_NUMBERS = 8  # layers


def layer_maps(name: str, tables: dict[str, dict[str, NDArray[np.float64]]], reading: str, over: str) -> Drawing:
    """tables: decoder -> {cka, cosine} -> [L, L]. reading: in words, `mean of the tokens`; over: which texts."""
    from matplotlib.figure import Figure

    shown = list(tables)[:MOST]
    names = short_names(shown, 20)
    with house_style():
        size = PANEL * len(shown) + 1.2, (PANEL + 0.2) * len(MEASURES) + 0.3
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(MEASURES), len(shown), squeeze=False)
        for place, (row, (measure, said)) in enumerate(zip(panels, MEASURES.items(), strict=True)):
            low = min(0.0, *(np.nanmin(tables[label][measure]) for label in shown))
            quads: Any = None
            for axes, label in zip(row, shown, strict=True):
                quads = _map(axes, tables[label][measure], low)
                axes.set_title(names[label] if place == 0 else "")
                axes.set_xlabel("layer" if place == len(MEASURES) - 1 else "")
            row[0].set_ylabel("layer")
            bar = figure.colorbar(quads, ax=row, shrink=0.8, pad=0.01)
            bar.set_label(said)
            bar.outline.set_visible(False)
    left = f" The first {MOST} of {len(tables)} decoders are drawn." if len(tables) > MOST else ""
    caption = (
        f"Similarity of every two layers of a decoder, by linear CKA (above) and by the mean cosine of a text's two "
        f"vectors (below); a layer's vector of a text is the {reading}; mean over seeds; over {over}.{left}"
    )
    ends = [f"{label} {tables[label]['cka'][0, -1]:.2f}" for label in shown]
    alt = f"Heat maps, 1 on the diagonal. Linear CKA of the first and the last layer: {', '.join(ends)}."
    return Drawing(name, f"Similarity of layers, {reading}", caption, alt, figure)


def _map(axes: Any, table: NDArray[np.float64], low: float) -> Any:
    """Quads, so that vector files stay sharp; pale is alike."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(colormaps["cividis"](np.linspace(0.25, 1, 256)))
    edges = np.arange(len(table) + 1) - 0.5
    quads = axes.pcolormesh(edges, edges, table, cmap=colours, vmin=low, vmax=1, edgecolors="white", linewidth=0.3)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if len(table) <= MOST_WITH_NUMBERS:
        axes.set_xticks(range(len(table)))
        axes.set_yticks(range(len(table)))
        for i, j in np.ndindex(table.shape):
            dark = table[i, j] < low + 0.4 * (1 - low)
            look = {"ha": "center", "va": "center", "fontsize": 4.5, "color": "white" if dark else BLACK}
            axes.text(j, i, f"{table[i, j]:.2f}".replace("0.", "."), **look)
    return quads
