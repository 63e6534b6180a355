"""Compares what routing weights and hidden states hold: clusters, similarities of pairs, and pairs that they fail.

MoEE (Li and Zhou, arXiv 2410.10814, section 3.2, table 1 and figure 2). As a yardstick k-means is compared with itself:
what two starts on the same vectors disagree on is no difference between readings.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.questions.question import Answer
from cli.limits import Limit, real
from representation.encoders_studied import Studied
from representation.moee.clusters import Labels, agreement, deviation, partition, shares
from representation.moee.complementarity_tables import (
    MEASURES,
    cluster_drawing,
    cluster_grid,
    failure_drawing,
    pair_grid,
)
from representation.moee.mixtures import HS_AND_RW, check_sizes, mixtures
from representation.moee.pair_tasks import Floats, PairTask, draws, interval, once, pair_tasks, size, spearman
from representation.question import each
from representation.readings import arrays, encode, readings_of
from representation.texts import Arrays, Texts, gathered

Config = dict[str, Any]
PLACE = 90
NAME = "complementarity"
LIMITS = {
    "complementarity.starts": Limit(2),
    "complementarity.pairs": Limit(8),
    "complementarity.threshold": real(0, below=1),
    "complementarity.bootstraps": Limit(100),
}
THRESHOLDS = np.round(np.arange(0.05, 0.51, 0.05), 2)


def answer(encoders: list[Studied], texts: Texts, settings: Config) -> Answer | None:
    """Return the answer; None where no encoder is a mixture of experts."""
    keys = settings[NAME]
    check_sizes(f"{NAME}.clusters", keys["clusters"])
    experts = mixtures(encoders)
    if not experts:
        return None
    tasks = pair_tasks(texts.task_set.data.values(), keys["pairs"], settings["texts_seed"])
    clusters, pairs, failed = [], [], []
    for studied in each(experts, NAME, settings):
        vectors = _of_texts(studied, texts)
        for k in keys["clusters"]:
            clusters += [{"encoder": studied.label, **row} for row in compared(vectors, k, keys["starts"])]
        for task in tasks:
            similarity = _of_pairs(studied, task, texts)
            pairs.append({"encoder": studied.label, **correlated(task, similarity, keys["bootstraps"])})
            failed += [{"encoder": studied.label, **row} for row in failures(task, similarity)]
    frame, over = pd.DataFrame(clusters), f"{size(tasks)} of {texts.benchmark}"
    frames, grids = {f"{NAME}_clusters": frame}, [cluster_grid(frame, texts.over)]
    if tasks:
        frames |= {f"{NAME}_pairs": pd.DataFrame(pairs), f"{NAME}_failures": pd.DataFrame(failed)}
        grids.append(pair_grid(frames[f"{NAME}_pairs"], frames[f"{NAME}_failures"], keys["threshold"], over))

    def drawings() -> list[Drawing]:
        of_pairs = [failure_drawing(frames[f"{NAME}_failures"], over)] if tasks else []
        return [cluster_drawing(frame, texts.over), *of_pairs]

    notes = [
        f"Each of {keys['starts']} k-means runs is the best of ten starts.",
        "With itself: two runs of k-means on the same vectors.",
        "Published for DeepSeekMoE-16B: AMI .29, NMI .29, Jaccard .06, exact match 45.54 % (texts and number of "
        "clusters not told there), Spearman of HS with RW .51 on STS12.",
    ]
    return Answer(NAME, "Complementarity of HS and RW", grids, drawings, frames, notes)


def _of_texts(studied: Studied, texts: Texts) -> Arrays:
    """HS and RW of every distinct text of the sample, from one pass."""
    passes = texts.passes(studied, texts.distinct, arrays(readings_of(studied, HS_AND_RW)))
    return gathered(passes, len(texts.distinct))


def _of_pairs(studied: Studied, task: PairTask, texts: Texts) -> dict[str, Floats]:
    """Reading -> [n] similarities, with the task's own instruction."""
    readings, instruction = readings_of(studied, HS_AND_RW), texts.instruction(studied, task.name, "query")
    vectors = encode(readings, studied.encoder(), task.texts, instruction)
    return {name: task.similarities(v) for name, v in vectors.items()}


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
    low, high = interval(samples[1:])
    return {"task": task.name, "pairs": len(task.left), "spearman": float(samples[0]), "low": low, "high": high}


def failures(task: PairTask, similarity: dict[str, Floats]) -> list[Config]:
    """Return the shares of failed pairs at each threshold."""
    off = {name: deviation(values, task.truth) for name, values in similarity.items()}
    return [{"task": task.name, "threshold": float(t), **shares(off["HS"], off["RW"], float(t))} for t in THRESHOLDS]
