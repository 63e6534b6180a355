"""Figures of the layers: curves of their scores, and heat maps of their similarity."""

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar
from analysis.drawings.style import GREY, MOST_DESIGNS
from analysis.statistics.arrays import Floats
from representation.figures import legend, likeness_map, look
from representation.layers.likeness import POOLINGS

CURVE_PANEL = 1.75, 1.7  # inches
MOST_STARTS = 4
DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)))
MAP_PANEL = 1.55  # inches
MEASURES = {"cka": "linear CKA", "cosine": "mean cosine"}
MOST_MAPS = 12  # decoders
MOST_WITH_NUMBERS = 8  # layers


def layer_curves(means: pd.DataFrame, trained: list[str], over: str) -> Drawing:
    """means: (decoder, pooling, layer) x type; trained: decoders that are runs, drawn full; starts are grey and dashed.

    over: words for the tasks. At most as many runs as there are marks are drawn, the first ones.
    """
    every = list(dict.fromkeys(means.index.get_level_values("decoder")))
    runs = [name for name in every if name in trained][:MOST_DESIGNS]
    starts = [name for name in every if name not in trained][:MOST_STARTS]
    poolings = [p for p in POOLINGS if p in means.index.get_level_values("pooling")]
    names = short_names([*runs, *starts])
    width = CURVE_PANEL[0] * len(means.columns) + inches(names.values()) + 0.7
    figure = Figure(figsize=(width, CURVE_PANEL[1] * len(poolings) + 0.4), layout="constrained")
    panels = figure.subplots(len(poolings), len(means.columns), sharex=True, sharey="col", squeeze=False)
    for (i, pooling), (j, kind) in product(enumerate(poolings), enumerate(means.columns)):
        scores, axes = means[kind].xs(pooling, level="pooling"), panels[i, j]
        for name, dashes in zip(starts, DASHES, strict=False):
            axes.plot(scores[name], color=GREY, linestyle=dashes, linewidth=1.1, label=names[name])
        for k, name in enumerate(runs):
            axes.plot(scores[name], **look(k, 3.5, 1), label=names[name])
        axes.grid(axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    for axes, pooling in zip(panels[:, 0], poolings, strict=True):
        axes.set_ylabel(f"score, {POOLINGS[pooling]}")
    for top, bottom, kind in zip(panels[0], panels[-1], means.columns, strict=True):
        top.set_title(kind)
        bottom.set_xlabel("layer")
    legend(figure, panels[0, 0], "outside right center", handlelength=2.6)
    left = f" The first {len(runs)} of the runs are drawn." if len(runs) + len(starts) < len(every) else ""
    read = " (above) and by ".join(f"the {POOLINGS[p]}" for p in poolings) + " (below)" * (len(poolings) > 1)
    caption = (
        f"Score of every layer on each task type, against the layer (0 is the first, the last one is taken after the "
        f"final norm), read by {read}, mean over seeds, on {over}; grey, dashed: the decoders before training.{left}"
    )
    best = means.mean(axis=1).groupby(level=["decoder", "pooling"], sort=False).idxmax()
    named = [f"{decoder}, {POOLINGS[pooling]}: layer {layer}" for decoder, pooling, layer in best if decoder in runs]
    alt = f"Lines of score against layer. Highest mean over types: {'; '.join(named[:12])}."
    return Drawing("layers_curves", "Layer curves", caption, alt, figure)


def layer_maps(name: str, tables: dict[str, dict[str, Floats]], reading: str, over: str) -> Drawing:
    """tables: decoder -> {cka, cosine} -> [L, L]. reading: in words, `mean of the tokens`; over: which texts."""
    shown = list(tables)[:MOST_MAPS]
    names = short_names(shown, 20)
    size = MAP_PANEL * len(shown) + 1.2, (MAP_PANEL + 0.2) * len(MEASURES) + 0.3
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(MEASURES), len(shown), squeeze=False)
    for row, (measure, words) in zip(panels, MEASURES.items(), strict=True):
        low = min(np.nanmin(tables[label][measure]) for label in shown)
        for axes, label in zip(row, shown, strict=True):
            table = tables[label][measure]
            few = len(table) <= MOST_WITH_NUMBERS
            mesh = likeness_map(axes, table, low, 4.5 if few else None)
            if few:
                axes.set_xticks(range(len(table)))
                axes.set_yticks(range(len(table)))
        row[0].set_ylabel("layer")
        colour_bar(figure, mesh, row, words, shrink=0.8)
    for top, bottom, label in zip(panels[0], panels[-1], shown, strict=True):
        top.set_title(names[label])
        bottom.set_xlabel("layer")
    left = f" The first {MOST_MAPS} of {len(tables)} decoders are drawn." if len(tables) > MOST_MAPS else ""
    caption = (
        f"Similarity of every two layers of a decoder, by linear CKA (above) and by the mean cosine of a text's two "
        f"vectors (below); a layer's vector of a text is the {reading}; mean over seeds; over {over}.{left}"
    )
    ends = [f"{label} {tables[label]['cka'][0, -1]:.2f}" for label in shown]
    alt = f"Heat maps, 1 on the diagonal. Linear CKA of the first and the last layer: {', '.join(ends)}."
    return Drawing(name, f"Similarity of layers, {reading}", caption, alt, figure)
