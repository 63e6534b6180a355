"""Whether routing weights and hidden states hold the same: clusters, similarities of pairs, and pairs that they fail.

MoEE (Li and Zhou, arXiv 2410.10814, section 3.2, table 1 and figure 2). As a yardstick k-means is compared with itself:
what two starts on the same vectors disagree on is no difference between readings.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.drawings.drawing import Drawing
from analysis.drawings.style import BLACK, house_style, mark
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from cli.limits import Limit, real
from representation.encoders_studied import Subject
from representation.moee.clusters import Agreement, Labels, agreement, deviation, partition, shares
from representation.moee.pair_tasks import Floats, PairTask, draws, interval, once, pair_tasks, said, spearman
from representation.moee.vectors import Vectors, check_sizes, encode, mixtures, named_readings, readings_of
from representation.progress import each
from representation.texts import Texts

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


Config = dict[str, Any]
LIMITS = {
    "complementarity.starts": Limit(2),
    "complementarity.pairs": Limit(8),
    "complementarity.threshold": real(0, below=1),
    "complementarity.bootstraps": Limit(100),
}
THRESHOLDS = np.round(np.arange(0.05, 0.51, 0.05), 2)


def answer(subjects: list[Subject], texts: Texts, settings: Config) -> Answer | None:
    """None where no encoder is a mixture of experts."""
    own = settings["complementarity"]
    check_sizes("complementarity.clusters", own["clusters"])
    found = mixtures(subjects)
    if not found:
        return None
    tasks = pair_tasks(list(texts.task_set.data.values()), own["pairs"], settings["texts_seed"])
    clusters, pairs, failed = [], [], []
    for subject in each(found, "complementarity", settings):
        vectors = _of_texts(subject, texts)
        for k in own["clusters"]:
            clusters += [{"encoder": subject.label, **row} for row in compared(vectors, k, own["starts"])]
        for task in tasks:
            similarity = _of_pairs(subject, task, texts)
            pairs.append({"encoder": subject.label, **correlated(task, similarity, own["bootstraps"])})
            failed += [{"encoder": subject.label, **row} for row in failures(task, similarity)]
    frames = {"complementarity_clusters": pd.DataFrame(clusters)}
    grids = [cluster_grid(frames["complementarity_clusters"], texts.over)]
    drawings = [agreement_figure(frames["complementarity_clusters"], texts.over)]
    if tasks:
        of_pairs, of_failed = pd.DataFrame(pairs), pd.DataFrame(failed)
        frames |= {"complementarity_pairs": of_pairs, "complementarity_failures": of_failed}
        over = f"{said(tasks)} of {texts.benchmark}"
        grids.append(pair_grid(of_pairs, of_failed, own["threshold"], over))
        drawings.append(failure_figure(of_failed, over))
    return Answer("complementarity", "Complementarity of HS and RW", grids, lambda: drawings, frames, _notes(own))


def _of_texts(subject: Subject, texts: Texts) -> Vectors:
    """HS and RW of every distinct text of the sample, from one pass."""
    readings = readings_of(subject, {name: word for name, word in named_readings(1).items() if name != "sum"})
    wanted = list({text.text: text for text in texts.every}.values())
    held: Vectors = {}
    for places, part in texts.passes(subject, wanted, lambda b: {n: v.cpu().numpy() for n, v in readings(b).items()}):
        for name, vectors in part.items():
            held.setdefault(name, np.empty((len(wanted), vectors.shape[1]), np.float32))[places] = vectors
    return held


def _of_pairs(subject: Subject, task: PairTask, texts: Texts) -> dict[str, Floats]:
    """Reading -> [n] similarities, with the task's own instruction."""
    readings = readings_of(subject, {name: word for name, word in named_readings(1).items() if name != "sum"})
    (metadata,) = (t.metadata for t in texts.task_set.tasks if t.metadata.name == task.name)
    encoder = subject.encoder()
    asked = encoder.tokenizer.template.asked(subject.instructions.of(metadata, "query"), "query")
    return {name: task.similarities(v) for name, v in encode(readings, encoder, task.texts, asked).items()}


def compared(vectors: dict[str, NDArray[np.float32]], clusters: int, starts: int) -> list[Config]:
    """Return rows: HS with RW start by start, and each with itself under another start; every measure's mean."""
    labels = {n: [partition(v, min(clusters, len(v)), seed) for seed in range(starts)] for n, v in vectors.items()}
    apart: dict[str, list[tuple[Labels, Labels]]] = {"HS with RW": list(zip(labels["HS"], labels["RW"], strict=True))}
    for name, own in labels.items():
        apart[f"{name} with itself"] = list(combinations(own, 2))
    by_chance = np.random.default_rng(0)
    apart["HS with RW shuffled"] = [(a, by_chance.permutation(b)) for a, b in apart["HS with RW"]]
    rows = []
    for what, pairs in apart.items():
        found = [agreement(a, b) for a, b in pairs]
        rows.append({"clusters": clusters, "compared": what, **_means(found)})
    return rows


def _means(found: list[Agreement]) -> dict[str, float]:
    return {key: float(np.mean([getattr(f, key) for f in found])) for key in MEASURES}


def correlated(task: PairTask, similarity: dict[str, Floats], bootstraps: int) -> Config:
    """Return the Spearman correlation of the pairs' similarities by HS and by RW, with its 95 % interval."""
    counts = np.concatenate([once(len(task.left)), draws(task.units, bootstraps, 0)])
    samples = spearman(np.stack([similarity["HS"], similarity["RW"]]), counts)[:, 0, 1]
    low, high = interval(samples[1:])
    return {"task": task.name, "pairs": len(task.left), "spearman": float(samples[0]), "low": low, "high": high}


def failures(task: PairTask, similarity: dict[str, Floats]) -> list[Config]:
    """Return the shares of failed pairs at each threshold."""
    off = {name: deviation(values, task.truth) for name, values in similarity.items()}
    return [
        {"task": task.name, "threshold": float(t), **vars(shares(off["HS"], off["RW"], float(t)))} for t in THRESHOLDS
    ]


def _notes(own: Config) -> list[str]:
    return [
        f"Each of {own['starts']} k-means runs is the best of ten starts.",
        "With itself: two runs of k-means on the same vectors.",
        "Published for DeepSeekMoE-16B: AMI .29, NMI .29, Jaccard .06, exact match 45.54 % (texts and number of "
        "clusters not told there), Spearman of HS with RW .51 on STS12.",
    ]
