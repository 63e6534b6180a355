"""Figures of what HS and RW have in common."""

import pandas as pd

from analysis.figures.drawing import Drawing
from analysis.figures.style import BLACK, house_style, mark

NAMES = {"rand": "ARI", "mutual": "AMI", "nmi": "NMI", "jaccard": "Jaccard", "exact": "exact"}


@house_style()
def agreement_figure(frame: pd.DataFrame, over: str) -> Drawing:
    """Dots: each measure of agreement, a mark for each comparison, a panel for each encoder and number of clusters."""
    from matplotlib.figure import Figure

    parts = list(frame.groupby(["encoder", "clusters"], sort=False))
    columns = frame["clusters"].nunique()
    rows = -(-len(parts) // columns)
    figure = Figure(figsize=(1.6 + 2.6 * columns, 0.6 + 2.1 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, ((encoder, clusters), own) in zip(panels, parts, strict=True):
        for k, row in enumerate(own.to_dict("records")):
            look = mark(k)
            xs = [x + 0.12 * (k - 1.5) for x in range(len(NAMES))]
            ys = [row[key] for key in NAMES]
            axes.plot(xs, ys, look.shape, color=look.colour, markersize=4, label=row["compared"])
        axes.set_xticks(range(len(NAMES)), NAMES.values())
        axes.set_title(f"{encoder}\n{clusters} clusters")
        axes.grid(axis="y")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper")
    caption = (
        f"Agreement of k-means clusters of HS with those of RW (mean over starts), beside each with itself and with "
        f"shuffled labels; {over}. Jaccard: of pairs of texts; exact: exact match after matching clusters."
    )
    across = frame[frame["compared"] == "HS with RW"]
    said = ", ".join(f"{r.encoder} {r.clusters} clusters: {r.rand:.2f}" for r in across.itertuples())
    return Drawing("complementarity_clusters", "Clusters in common", caption, f"Adjusted Rand: {said}.", figure)


@house_style()
def failure_figure(frame: pd.DataFrame, over: str) -> Drawing:
    """Lines: share of failed pairs that one reading alone fails, by threshold, beside what chance would give."""
    from matplotlib.figure import Figure

    means = frame.assign(alone=frame["one_alone"] + frame["other_alone"])
    means = means.groupby(["encoder", "threshold"], sort=False)[["alone", "independent"]].mean()
    encoders = list(frame["encoder"].unique())
    figure = Figure(figsize=(4.6, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for k, encoder in enumerate(encoders):
        own, look = means.loc[encoder], mark(k)
        axes.plot(own.index, own["alone"], look.shape, linestyle="-", color=look.colour, markersize=4, label=encoder)
        axes.plot(own.index, own["independent"], "--", color=look.colour, label=f"{encoder}, by chance")
    axes.axhline(0.5, color=BLACK, linewidth=0.6)
    axes.set_xlabel("threshold (share of all pairs)")
    axes.set_ylabel("failed by one alone")
    axes.grid()
    figure.legend(loc="outside right upper")
    caption = (
        f"Of the pairs that HS or RW fails, the share that only one of them fails, by the threshold of failure, mean "
        f"over tasks; {over}. Dashed: what it would be if failures had nothing to do with one another."
    )
    last = means.groupby(level=0, sort=False).last()["alone"]
    said = ", ".join(f"{name} {v:.2f}" for name, v in last.items())
    return Drawing(
        "complementarity_failures", "Failed by one alone", caption, f"At the largest threshold: {said}.", figure
    )
