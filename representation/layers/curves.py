"""Score against layer: a panel a task type and reading, a line a decoder."""

from typing import TYPE_CHECKING, Any

from analysis.figures.drawing import Drawing
from analysis.figures.fit import inches, short_names
from analysis.figures.style import GREY, MOST_DESIGNS, house_style, mark
from representation.layers.tables import type_means
from representation.layers.vectors import POOLINGS

if TYPE_CHECKING:
    import pandas as pd

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
