"""Compares what routing weights and hidden states hold: clusters and their topics, similarities of pairs, failed pairs.

MoEE (Li and Zhou, arXiv 2410.10814, section 3.2, table 1 and figure 2). As a yardstick k-means is compared with itself:
what two starts on the same vectors disagree on is no difference between readings.
"""

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.style import BLACK, mark
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from analysis.statistics.sign_flip import percentile_interval
from cli.limits import Limit, real
from representation.encoders_studied import Studied
from representation.figures import look, mark_panels
from representation.moee.clusters import Labels, agreement, deviation, partition, shares
from representation.moee.mixtures import HS_AND_RW, mixtures
from representation.moee.pair_tasks import Floats, PairTask, draws, once, pair_tasks, size, spearman
from representation.moee.topics import topic_grid, topics, won_grid, won_pairs
from representation.question import each
from representation.readings import arrays, encode, readings_of
from representation.texts import Arrays, Texts, gathered

Config = dict[str, Any]
PLACE = 90
NAME = "complementarity"
LIMITS = {
    "complementarity.clusters": Limit(2, each=True),
    "complementarity.starts": Limit(2),
    "complementarity.pairs": Limit(8),
    "complementarity.threshold": real(0, below=1),
    "complementarity.bootstraps": Limit(100),
    "complementarity.words": Limit(1),
    "complementarity.shown": Limit(1),
}
THRESHOLDS = np.round(np.arange(0.05, 0.51, 0.05), 2)
MEASURES = {
    "rand": "Adjusted Rand",
    "mutual": "AMI",
    "nmi": "NMI",
    "jaccard": "Jaccard (pairs)",
    "matched_jaccard": "Jaccard (matched)",
    "exact": "Exact match",
}
SHORT = {"rand": "ARI", "mutual": "AMI", "nmi": "NMI", "jaccard": "Jaccard", "exact": "exact"}


def answer(encoders: list[Studied], texts: Texts, settings: Config) -> Answer | None:
    """Return the answer; None where no encoder is a mixture of experts."""
    keys = settings[NAME]
    experts = mixtures(encoders)
    if not experts:
        return None
    tasks = pair_tasks(texts.task_set.data.values(), keys["pairs"], settings["texts_seed"])
    threshold = float(THRESHOLDS[abs(THRESHOLDS - keys["threshold"]).argmin()])
    named = min(keys["clusters"][0], len(texts.distinct))
    clusters, topic_rows, pairs, failed, won = [], [], [], [], []
    for studied in each(experts, NAME, settings):
        readings = readings_of(studied, HS_AND_RW)
        vectors = gathered(texts.passes(studied, texts.distinct, arrays(readings)), len(texts.distinct))
        for k in keys["clusters"]:
            clusters += [{"encoder": studied.label, **row} for row in compared(vectors, k, keys["starts"])]
        for name, of_reading in vectors.items():
            cluster_topics = topics([t.text for t in texts.distinct], partition(of_reading, named, 0), keys["words"])
            topic_rows += [{"encoder": studied.label, "reading": name, **row} for row in cluster_topics]
        for task in tasks:
            instruction = texts.instruction(studied, task.name, "query")
            of_texts = encode(readings, studied.encoder(), task.texts, instruction)
            similarity = {name: task.similarities(v) for name, v in of_texts.items()}
            pairs.append({"encoder": studied.label, **correlated(task, similarity, keys["bootstraps"])})
            failed += [{"encoder": studied.label, **row} for row in failures(task, similarity)]
            examples = won_pairs(task, similarity, threshold, keys["shown"])
            won += [{"encoder": studied.label, **row} for row in examples]
    frame, over = pd.DataFrame(clusters), f"{size(tasks)} of {texts.benchmark}"
    of_topics = pd.DataFrame(topic_rows)
    frames = {f"{NAME}_clusters": frame, f"{NAME}_topics": of_topics}
    grids = [cluster_grid(frame, texts.over), topic_grid(of_topics, named, texts.over)]
    drawings = [partial(cluster_drawing, frame, texts.over)]
    if tasks:
        of_pairs, of_failures = pd.DataFrame(pairs), pd.DataFrame(failed)
        frames |= {f"{NAME}_pairs": of_pairs, f"{NAME}_failures": of_failures}
        grids.append(pair_grid(of_pairs, of_failures, threshold, over))
        if won:
            frames[f"{NAME}_won"] = pd.DataFrame(won)
            grids.append(won_grid(frames[f"{NAME}_won"], threshold, over))
        drawings.append(partial(failure_drawing, of_failures, over))
    notes = [
        f"Each of {keys['starts']} k-means runs is the best of ten starts.",
        "With itself: two runs of k-means on the same vectors.",
        "Published for DeepSeekMoE-16B: AMI .29, NMI .29, Jaccard .06, exact match 45.54 % (texts and number of "
        "clusters not told there), Spearman of HS with RW .51 on STS12.",
    ]
    return Answer(NAME, "Complementarity of HS and RW", grids, lambda: [draw() for draw in drawings], frames, notes)


def compared(vectors: Arrays, clusters: int, starts: int) -> list[Config]:
    """Return rows: HS with RW start by start, and each with itself under another start; every measure's mean."""
    labels = {n: [partition(v, min(clusters, len(v)), seed) for seed in range(starts)] for n, v in vectors.items()}
    across, by_chance = list(zip(labels["HS"], labels["RW"], strict=True)), np.random.default_rng(0)
    apart: dict[str, list[tuple[Labels, Labels]]] = {
        "HS with RW": across,
        **{f"{name} with itself": list(combinations(runs, 2)) for name, runs in labels.items()},
        "HS with RW shuffled": [(a, by_chance.permutation(b)) for a, b in across],
    }
    rows = []
    for what, pairs in apart.items():
        agreements = [agreement(a, b) for a, b in pairs]
        means = {key: float(np.mean([of_pair[key] for of_pair in agreements])) for key in MEASURES}
        rows.append({"clusters": clusters, "compared": what, **means})
    return rows


def correlated(task: PairTask, similarity: dict[str, Floats], bootstraps: int) -> Config:
    """Return the Spearman correlation of the pairs' similarities by HS and by RW, with its 95 % interval."""
    counts = np.concatenate([once(len(task.left)), draws(task.units, bootstraps, 0)])
    samples = spearman(np.stack([similarity["HS"], similarity["RW"]]), counts)[:, 0, 1]
    low, high = map(float, percentile_interval(samples[1:][np.isfinite(samples[1:])]))
    return {"task": task.name, "pairs": len(task.left), "spearman": float(samples[0]), "low": low, "high": high}


def failures(task: PairTask, similarity: dict[str, Floats]) -> list[Config]:
    """Return the shares of failed pairs at each threshold."""
    off = {name: deviation(values, task.truth) for name, values in similarity.items()}
    return [{"task": task.name, "threshold": float(t), **shares(off["HS"], off["RW"], float(t))} for t in THRESHOLDS]


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
    chosen = failed[failed["threshold"] == threshold].set_index(["encoder", "task"])
    rows = []
    for r in pairs.to_dict("records"):
        f = chosen.loc[(r["encoder"], r["task"])]
        across = Cell(score(r["spearman"]), below=(f"[{score(r['low'])}, {score(r['high'])}]",))
        values = (f.other_alone, f.one_alone, f.both, f.one_alone + f.other_alone, f.independent)
        about = [Cell(str(r["encoder"])), Cell(str(r["task"])), across, Cell(str(int(f.pairs)))]
        rows.append([*about, *(Cell(score(v, 3)) for v in values)])
    caption = (
        "Spearman: of the pairs' similarities by HS with those by RW, with its 95 % interval over bootstrap samples of "
        f"pairs; {over}. Failed pairs: whose rank by similarity is off by more than {threshold:g} of all pairs for HS "
        "or RW; shares of these. By chance: what by one alone would be if failures had nothing to do with one another."
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
        f"Agreement of k-means clusters of HS with those of RW (mean over starts), beside each with itself and with "
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
    figure = canvas(4.6, 2.8)
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
