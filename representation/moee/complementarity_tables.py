"""Tables and figures of the complementarity of routing weights and hidden states."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.drawings.style import BLACK, mark
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from representation.figures import look, mark_panels

MEASURES = {
    "rand": "Adjusted Rand",
    "mutual": "AMI",
    "nmi": "NMI",
    "jaccard": "Jaccard (pairs)",
    "matched_jaccard": "Jaccard (matched)",
    "exact": "Exact match",
}
SHORT = {"rand": "ARI", "mutual": "AMI", "nmi": "NMI", "jaccard": "Jaccard", "exact": "exact"}


def cluster_grid(frame: pd.DataFrame, over: str) -> Grid:
    """One row per encoder, number of clusters and comparison."""
    rows = []
    for r in frame.to_dict("records"):
        about = [Cell(str(r[key])) for key in ("encoder", "clusters", "compared")]
        rows.append([*about, *(Cell(score(r[key], 3)) for key in MEASURES)])
    caption = (
        f"Agreement of k-means clusters on vectors of unit length, mean over starts; {over}, each once. "
        "Jaccard (pairs): pairs of texts together in both over those together in either. Jaccard (matched), exact "
        "match: after matching clusters one to one (Hungarian algorithm)."
    )
    head = ["Encoder", "Clusters", "Compared", *MEASURES.values()]
    return Grid("complementarity-clusters", caption, head, rows, left=3, title="Clusters of HS and of RW")


def pair_grid(pairs: pd.DataFrame, failed: pd.DataFrame, threshold: float, over: str) -> Grid:
    """One row per encoder and task: correlation of similarities, and who fails the pairs that one of them fails."""
    thresholds = failed["threshold"].unique()
    at = thresholds[abs(thresholds - threshold).argmin()]
    chosen = failed[failed["threshold"] == at].set_index(["encoder", "task"])
    rows = []
    for r in pairs.to_dict("records"):
        f = chosen.loc[(r["encoder"], r["task"])]
        across = Cell(score(r["spearman"]), below=(f"[{score(r['low'])}, {score(r['high'])}]",))
        values = (f.other_alone, f.one_alone, f.both, f.one_alone + f.other_alone, f.independent)
        about = [Cell(str(r["encoder"])), Cell(str(r["task"])), across, Cell(str(int(f.pairs)))]
        rows.append([*about, *(Cell(score(v, 3)) for v in values)])
    caption = (
        "Spearman: of the pairs' similarities by HS with those by RW, with its 95 % interval over bootstrap samples of "
        f"pairs; {over}. Failed pairs: whose rank by similarity is off by more than {at:g} of all pairs for HS or RW; "
        "shares of these. By chance: what by one alone would be if failures had nothing to do with one another."
    )
    head = ["Encoder", "Task", "Spearman", "Failed pairs"]
    head += ["by RW alone", "by HS alone", "by both", "by one alone", "by chance"]
    return Grid("complementarity-pairs", caption, head, rows, left=2, title="Pairs: similarities and failures")


def cluster_drawing(frame: pd.DataFrame, over: str) -> Drawing:
    """Draw each measure of agreement, one mark per comparison, one panel per encoder and number of clusters."""
    panels = {
        f"{encoder}\n{clusters} clusters": rows.set_index("compared")[list(SHORT)].rename(columns=SHORT)
        for (encoder, clusters), rows in frame.groupby(["encoder", "clusters"], sort=False)
    }
    caption = (
        f"Agreement of k-means clusters of HS with those of RW (mean over starts), next to each with itself and with "
        f"shuffled labels; {over}. Jaccard: of pairs of texts; exact: exact match after matching clusters."
    )
    across = frame[frame["compared"] == "HS with RW"]
    rand = ", ".join(f"{r.encoder} {r.clusters} clusters: {r.rand:.2f}" for r in across.itertuples())
    figure = mark_panels(panels, frame["clusters"].nunique(), ("", ""))
    return Drawing("complementarity_clusters", "Clusters in common", caption, f"Adjusted Rand: {rand}.", figure)


def failure_drawing(frame: pd.DataFrame, over: str) -> Drawing:
    """Draw the share of failed pairs that one reading alone fails, by threshold, beside what chance would give."""
    means = frame.assign(alone=frame["one_alone"] + frame["other_alone"])
    means = means.groupby(["encoder", "threshold"], sort=False)[["alone", "independent"]].mean()
    figure = Figure(figsize=(4.6, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for k, encoder in enumerate(frame["encoder"].unique()):
        rows = means.loc[encoder]
        axes.plot(rows.index, rows["alone"], **look(k, 4), label=encoder)
        axes.plot(rows.index, rows["independent"], "--", color=mark(k).colour, label=f"{encoder}, by chance")
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
    alt = f"At the largest threshold: {', '.join(f'{name} {v:.2f}' for name, v in last.items())}."
    return Drawing("complementarity_failures", "Failed by one alone", caption, alt, figure)
