"""Heat maps of how alike the layers of a decoder are."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, GREY, MOST_DESIGNS, house_style, mark
from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from representation.layers.vectors import POOLINGS

if TYPE_CHECKING:
    import pandas as pd


def type_means(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Return one row an (decoder, pooling, layer), one column a type: the mean over its tasks, then over seeds."""
    by_seed = scores.groupby(["decoder", "pooling", "layer", "type", "seed"], sort=False)["score"].mean()
    return by_seed.groupby(["decoder", "pooling", "layer", "type"], sort=False).mean().unstack("type")[_types(scores)]


def layer_grids(scores: "pd.DataFrame", over: str) -> list[Grid]:
    """over: words for the tasks, `5 tasks of benchmark docs_dev`."""
    means = type_means(scores)
    return [_by_layer(means, over), _best(means, over)]


def _by_layer(means: "pd.DataFrame", over: str) -> Grid:
    layers = sorted(means.index.get_level_values("layer").unique())
    rows = []
    for decoder, pooling in _pairs(means):
        own = means.loc[decoder, pooling].sort_index().mean(axis=1)
        order = own.sort_values(ascending=False, kind="stable").index
        style = {order[0]: "best", **({order[1]: "second"} if len(order) > 1 else {})}
        cells = [Cell(score(own[layer]), style.get(layer, "")) for layer in layers]
        rows.append([Cell(decoder), Cell(POOLINGS[pooling]), *cells])
    caption = (
        f"Mean over task types of the score of each layer, read without parameters, on {over}. "
        "The best and second best layer of each row are set off."
    )
    header = ["Decoder", "Reading", *(f"Layer {layer}" for layer in layers)]
    return Grid("layers-scores", caption, header, rows, left=2, title="Score of each layer")


def _best(means: "pd.DataFrame", over: str) -> Grid:
    rows = []
    for decoder, pooling in _pairs(means):
        own = means.loc[decoder, pooling].sort_index()
        cells = [Cell(f"{score(own[kind].max())} ({own[kind].idxmax()})") for kind in own.columns]
        last = [Cell(signed(own.iloc[-1].mean() - own.mean(axis=1).max()))]
        rows.append([Cell(decoder), Cell(POOLINGS[pooling]), *cells, *last])
    caption = (
        f"The highest score of any layer on each task type, and in brackets which layer has it, on {over}; "
        "last column: the last layer's mean over types minus that of the best layer. A maximum over layers is no fair "
        "score of a design, since it is chosen on the tasks that it is measured on."
    )
    header = ["Decoder", "Reading", *means.columns, "Last - best"]
    return Grid("layers-best", caption, header, rows, left=2, title="Best layer of each task type")


def _pairs(means: "pd.DataFrame") -> list[tuple[str, str]]:
    return list(dict.fromkeys((decoder, pooling) for decoder, pooling, _ in means.index))


def _types(scores: "pd.DataFrame") -> list[str]:
    from analysis.scores.task_types import sort_types

    return sort_types(set(scores["type"]))


PANEL = 1.75, 1.7  # inches


def layer_curves(scores: "pd.DataFrame", trained: list[str], over: str) -> Drawing:
    """scores: of `layer_scores`; trained: the decoders that are runs, drawn full; starts are grey and dashed.

    over: words for the tasks. At most as many runs as there are marks are drawn, the first ones.
    """
    from matplotlib.figure import Figure

    means = type_means(scores)
    every = list(dict.fromkeys(means.index.get_level_values("decoder")))
    runs = [name for name in every if name in trained][:MOST_DESIGNS]
    starts = [name for name in every if name not in trained][:4]
    poolings, kinds = [p for p in POOLINGS if p in set(scores["pooling"])], list(means.columns)
    names = short_names([*runs, *starts])
    width = PANEL[0] * len(kinds) + inches(names.values()) + 0.7
    with house_style():
        figure = Figure(figsize=(width, PANEL[1] * len(poolings) + 0.4), layout="constrained")
        panels = figure.subplots(len(poolings), len(kinds), sharex=True, sharey="col", squeeze=False)
        for place, (row, pooling) in enumerate(zip(panels, poolings, strict=True)):
            for axes, kind in zip(row, kinds, strict=True):
                _panel(axes, means[kind].xs(pooling, level="pooling"), runs, starts, names)
                axes.set_title(kind if place == 0 else "")
                axes.set_xlabel("layer" if place == len(poolings) - 1 else "")
            row[0].set_ylabel(f"score, {POOLINGS[pooling]}")
        handles, said = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, said, loc="outside right center", handlelength=2.6)
    left = f" The first {len(runs)} of the runs are drawn." if len(runs) + len(starts) < len(every) else ""
    caption = (
        f"Score of every layer on each task type, against the layer (0 is the first, the last one is taken after the "
        f"final norm), read by {' (above) and by '.join(_the(p) for p in poolings)}{' (below)' * (len(poolings) > 1)}, "
        f"mean over seeds, on {over}; grey, dashed: the decoders before training.{left}"
    )
    return Drawing("layers_curves", "Layer curves", caption, _alt(means, runs), figure)


def _panel(axes: Any, own: Any, runs: list[str], starts: list[str], names: dict[str, str]) -> None:
    for k, name in enumerate(starts):
        dashes = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)))[k]
        axes.plot(own[name].index, own[name], color=GREY, linestyle=dashes, linewidth=1.1, label=names[name])
    for k, name in enumerate(runs):
        look = {"color": mark(k).colour, "marker": mark(k).shape, "markersize": 3.5, "linewidth": 1}
        axes.plot(own[name].index, own[name], label=names[name], **look)
    axes.grid(axis="y")
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _the(pooling: str) -> str:
    return f"the {POOLINGS[pooling]}"


def _alt(means: "pd.DataFrame", runs: list[str]) -> str:
    whole = means.mean(axis=1)
    said = []
    for (decoder, pooling), own in whole.groupby(level=["decoder", "pooling"], sort=False):
        if decoder in runs:
            said.append(f"{decoder}, {POOLINGS[pooling]}: layer {own.idxmax()[2]}")
    return f"Lines of score against layer. Highest mean over types: {'; '.join(said[:12])}."


MEASURES = {"cka": "linear CKA", "cosine": "mean cosine"}
MAP_PANEL = 1.55  # inches
MOST = 12  # decoders
MOST_WITH_NUMBERS = 8  # layers


def layer_maps(name: str, tables: dict[str, dict[str, NDArray[np.float64]]], reading: str, over: str) -> Drawing:
    """tables: decoder -> {cka, cosine} -> [L, L]. reading: in words, `mean of the tokens`; over: which texts."""
    from matplotlib.figure import Figure

    shown = list(tables)[:MOST]
    names = short_names(shown, 20)
    with house_style():
        size = MAP_PANEL * len(shown) + 1.2, (MAP_PANEL + 0.2) * len(MEASURES) + 0.3
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
