"""Compares what routing weights and hidden states hold: clusters and their topics, similarities of pairs, failed pairs.

MoEE (Li and Zhou, arXiv 2410.10814, section 3.2, table 1 and figure 2). As a yardstick k-means is compared with itself:
what two starts on the same vectors disagree on is no difference between variants.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from analysis.render import Section, Table
from analysis.statistics.arrays import Floats
from cli.limits import Limit, real
from representation.encoders_studied import Studied
from representation.moee.clusters import Labels, agreement, deviation, partition, shares, topics
from representation.moee.mixtures import HS_AND_RW, mixtures
from representation.moee.pair_tasks import PairTask, pair_tasks, size
from representation.sections import each
from representation.texts import Arrays, Texts, gathered
from representation.variants import arrays, encode, variants_of

Config = dict[str, Any]
PLACE = 90
NAME = "complementarity"
LIMITS = {
    "complementarity.clusters": Limit(2, each=True),
    "complementarity.starts": Limit(2),
    "complementarity.pairs": Limit(8),
    "complementarity.threshold": real(0, below=1),
    "complementarity.words": Limit(1),
}
THRESHOLDS = np.round(np.arange(0.05, 0.51, 0.05), 2)
TOPICS = (
    "Words of highest class-based tf-idf (BERTopic's, without English stop words) of each cluster of the first k-means "
    "run, the largest cluster first."
)
MEASURES = ("rand", "mutual", "nmi", "jaccard", "matched_jaccard", "exact")


def section(encoders: list[Studied], texts: Texts, settings: Config) -> Section | None:
    """Return the section; None where no encoder is a mixture of experts."""
    keys, experts = settings[NAME], mixtures(encoders)
    if not experts:
        return None
    tasks = pair_tasks(texts.task_set.data.values(), keys["pairs"], settings["texts_seed"])
    rows: dict[str, list[Config]] = {"clusters": [], "topics": [], "pairs": [], "failures": []}
    for studied in each(experts, NAME, settings):
        for name, of_encoder in _measured(studied, texts, tasks, keys).items():
            rows[name] += [{"encoder": studied.label, **row} for row in of_encoder]
    frames = {f"{NAME}_{name}": pd.DataFrame(of) for name, of in rows.items() if of}
    tables = [
        _cluster_table(frames[f"{NAME}_clusters"], texts.over),
        Table(f"{NAME}-topics", "Topics of the clusters", TOPICS, frames[f"{NAME}_topics"], left=4),
    ]
    if tasks:
        over = f"{size(tasks)} of {texts.benchmark}"
        tables.append(_pair_table(frames[f"{NAME}_pairs"], frames[f"{NAME}_failures"], keys["threshold"], over))
    return Section(NAME, "Complementarity of HS and RW", tables, frames=frames)


def _measured(studied: Studied, texts: Texts, tasks: list[PairTask], keys: Config) -> dict[str, list[Config]]:
    """Return the rows of each table for one encoder."""
    variants, distinct = variants_of(studied, HS_AND_RW), texts.distinct
    vectors = gathered(texts.passes(studied, distinct, arrays(variants)), len(distinct))
    rows: dict[str, list[Config]] = {"pairs": [], "failures": []}
    rows["clusters"] = [row for k in keys["clusters"] for row in compared(vectors, k, keys["starts"])]
    named = min(keys["clusters"][0], len(distinct))
    rows["topics"] = [
        {"variant": name, **row}
        for name, of_variant in vectors.items()
        for row in topics([t.text for t in distinct], partition(of_variant, named, 0), keys["words"])
    ]
    for task in tasks:
        instruction = texts.instruction(studied, task.name, "query")
        of_texts = encode(variants, studied.encoder(), task.texts, instruction)
        similarity = {name: task.similarities(v) for name, v in of_texts.items()}
        rho = float(spearmanr(similarity["HS"], similarity["RW"]).statistic)
        rows["pairs"].append({"task": task.name, "pairs": len(task.left), "spearman": rho})
        rows["failures"] += failures(task, similarity)
    return rows


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


def failures(task: PairTask, similarity: dict[str, Floats]) -> list[Config]:
    """Return the shares of failed pairs at each threshold."""
    off = {name: deviation(values, task.truth) for name, values in similarity.items()}
    return [{"task": task.name, "threshold": float(t), **shares(off["HS"], off["RW"], float(t))} for t in THRESHOLDS]


def _cluster_table(frame: pd.DataFrame, over: str) -> Table:
    caption = (
        f"Agreement of k-means clusters on vectors of unit length, mean over starts; {over}, each once. jaccard: pairs "
        "of texts together in both over those together in either; matched_jaccard, exact: after matching clusters one "
        "to one."
    )
    return Table(f"{NAME}-clusters", "Clusters of HS and of RW", caption, frame, left=3)


def _pair_table(pairs: pd.DataFrame, failed: pd.DataFrame, threshold: float, over: str) -> Table:
    nearest = THRESHOLDS[abs(THRESHOLDS - threshold).argmin()]
    chosen = failed[failed["threshold"] == nearest].rename(columns={"pairs": "failed"}).drop(columns="threshold")
    both = pairs.merge(chosen, on=["encoder", "task"])
    caption = (
        f"Spearman: of the pairs' similarities by HS with those by RW; {over}. Failed: pairs whose rank by similarity "
        f"is off by more than {nearest:g} of all pairs for HS or RW, and the shares that HS alone, RW alone and both "
        "fail; independent: what one alone would be if failures had nothing to do with one another."
    )
    columns = {"one_alone": "HS alone", "other_alone": "RW alone"}
    return Table(f"{NAME}-pairs", "Pairs: similarities and failures", caption, both.rename(columns=columns), left=2)
