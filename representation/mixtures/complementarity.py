"""Whether routing weights and hidden states hold the same: clusters, similarities of pairs, and pairs that they fail.

MoEE (Li and Zhou, arXiv 2410.10814, section 3.2, table 1 and figure 2). As a yardstick k-means is compared with itself:
what two starts on the same vectors disagree on is no difference between readings.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from records.limits import Limit, real
from representation.answer import Answer
from representation.mixtures.clusters import Agreement, Labels, agreement, partition
from representation.mixtures.complementarity_figures import agreement_figure, failure_figure
from representation.mixtures.complementarity_tables import MEASURES, cluster_grid, pair_grid
from representation.mixtures.failures import deviation, shares
from representation.mixtures.moee_vectors import Vectors, check_sizes, encode, mixtures, named_readings, readings_of
from representation.mixtures.pair_tasks import PairTask, pair_tasks, said
from representation.mixtures.resampled import Floats, draws, interval, once, spearman
from representation.progress import each
from representation.subject import Subject
from representation.texts import Texts

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
    return Answer("complementarity", "Complementarity of HS and RW", grids, drawings, frames, _notes(own))


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
