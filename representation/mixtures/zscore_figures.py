"""Scores under standardisation by batch, over random orders of the texts."""

import pandas as pd

from analysis.figures.drawing import Drawing
from analysis.figures.style import house_style, mark
from representation.mixtures.zscore import WHOLE


@house_style()
def score_figure(frame: pd.DataFrame, orders: int, over: str) -> Drawing:
    """A panel an encoder: for each size of batch the mean score and its range over orders, by reading."""
    from matplotlib.figure import Figure

    encoders, sizes = list(frame["encoder"].unique()), list(frame["batch"].unique())
    figure = Figure(figsize=(1.4 + 2.6 * len(encoders), 2.6), layout="constrained")
    panels = figure.subplots(1, len(encoders), sharey=True, squeeze=False)[0]
    for axes, encoder in zip(panels, encoders, strict=True):
        for k, (reading, own) in enumerate(frame[frame["encoder"] == encoder].groupby("reading", sort=False)):
            look, xs = mark(k), [sizes.index(size) + 0.15 * (k - 1) for size in own["batch"]]
            axes.vlines(xs, own["low"], own["high"], color=look.colour)
            axes.plot(xs, own["mean"], look.shape, color=look.colour, markersize=4, label=reading)
        axes.set_xticks(range(len(sizes)), [{0: "none", WHOLE: "all"}.get(size, str(size)) for size in sizes])
        axes.set_xlabel("texts in a batch")
        axes.set_title(encoder)
        axes.grid(axis="y")
    panels[0].set_ylabel("score")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper")
    caption = (
        f"Score of MoEE's readings standardised by batch as in the published code, mean over tasks; {over}. Marks: "
        f"mean over {orders} random orders of the same texts, lines: lowest to highest; none: not standardised."
    )
    widest = frame.assign(width=frame["high"] - frame["low"]).nlargest(1, "width").iloc[0]
    said = f"The widest range is {widest['width']:.4f}: {widest['reading']}, batches of {widest['batch']}."
    return Drawing("batch_zscore", "Scores over orders of the same texts", caption, said, figure)
