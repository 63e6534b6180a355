"""Tables of what HS and RW have in common."""

import pandas as pd

from analysis.formats import score
from analysis.tables.grid import Cell, Grid

MEASURES = {
    "rand": "Adjusted Rand",
    "mutual": "AMI",
    "nmi": "NMI",
    "jaccard": "Jaccard (pairs)",
    "matched_jaccard": "Jaccard (matched)",
    "exact": "Exact match",
}


def cluster_grid(frame: pd.DataFrame, over: str) -> Grid:
    """One row an encoder, number of clusters and comparison."""
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
    """One row an encoder and task: correlation of similarities, and who fails the pairs that one of them fails."""
    held = failed["threshold"].unique()
    at = held[abs(held - threshold).argmin()]
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
