"""Topics of clusters of texts, by their words, and the pairs of texts that one reading alone ranks well."""

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.statistics.arrays import Floats
from cli.errors import UserError
from representation.moee.clusters import Labels, deviation
from representation.moee.pair_tasks import PairTask

Config = dict[str, Any]
SHOWN = 90  # characters of a text of a pair


def class_tf_idf(counts: NDArray[np.int64]) -> Floats:
    """Return [C, V] weights tf_{t,c} log(1 + A / tf_t) of the words of C clusters; counts: [C, V], how often.

    tf_t: how often a word stands in all clusters, at least once; A: words of a cluster on average. The class-based
    tf-idf of BERTopic (Grootendorst, arXiv 2203.05794, section 3.3).
    """
    weights: Floats = counts * np.log1p(counts.sum() / len(counts) / counts.sum(axis=0))
    return weights


def topics(texts: Sequence[str], labels: Labels, words: int) -> list[Config]:
    """Return of each cluster, the largest first, its number of texts and its `words` words of highest weight.

    labels: [n] the cluster of each text. Words are those of scikit-learn's `CountVectorizer` without its English stop
    words; of equal weights the first in the alphabet. Raises `UserError` where there is no word.
    """
    counter = CountVectorizer(stop_words="english")
    try:
        of_texts = counter.fit_transform(texts)
    except ValueError as error:
        raise UserError("The texts hold no word that could name a topic. Raise texts.") from error
    names, sizes = np.unique(labels, return_counts=True)
    counts = np.stack([np.asarray(of_texts[labels == name].sum(axis=0)).ravel() for name in names])
    weights, vocabulary = class_tf_idf(counts), counter.get_feature_names_out()
    rows = []
    for row in np.argsort(-sizes, kind="stable"):
        best = [k for k in np.argsort(-weights[row], kind="stable")[:words] if counts[row, k]]
        rows.append({"texts": int(sizes[row]), "words": ", ".join(vocabulary[best])})
    return rows


def won_pairs(task: PairTask, similarity: Mapping[str, Floats], threshold: float, most: int) -> list[Config]:
    """Return of HS and of RW at most `most` pairs that it does not fail and the other does, the widest apart first.

    A pair fails where its rank by similarity is off its true rank by more than `threshold` of all pairs.
    """
    off = {name: deviation(values, task.truth) for name, values in similarity.items()}
    rows = []
    for winner, loser in (("HS", "RW"), ("RW", "HS")):
        won = np.flatnonzero((off[winner] <= threshold) & (off[loser] > threshold))
        for k in won[np.argsort(off[winner][won] - off[loser][won], kind="stable")][:most]:
            about = {"task": task.name, "ahead": winner, "by": float(off[loser][k] - off[winner][k])}
            texts = {"left": task.left[k], "right": task.right[k], "truth": float(task.truth[k])}
            rows.append({**about, **texts, **{name: float(off[name][k]) for name in ("HS", "RW")}})
    return rows


def topic_grid(frame: pd.DataFrame, clusters: int, over: str) -> Grid:
    """One row per encoder, reading and cluster; frame: encoder, reading, texts, words."""
    rows = [[Cell(str(r[key])) for key in ("encoder", "reading", "words", "texts")] for r in frame.to_dict("records")]
    caption = (
        f"Words of highest class-based tf-idf (BERTopic's, without English stop words) of each of {clusters} clusters "
        f"of the first k-means run, the largest cluster first; {over}, each once."
    )
    head = ["Encoder", "Clusters by", "Words", "Texts"]
    return Grid("complementarity-topics", caption, head, rows, left=3, title="Topics of the clusters")


def won_grid(frame: pd.DataFrame, threshold: float, over: str) -> Grid:
    """One row per pair, a sentence on it; frame: encoder and what `won_pairs` returns."""
    rows = []
    for r in frame.to_dict("records"):
        left, right = (shorten(r[side], SHOWN, placeholder=" ...") for side in ("left", "right"))
        sentence = f'"{left}" and "{right}", truth {r["truth"]:g}: off by {score(r["HS"], 2)} for HS and '
        about = (r["encoder"], r["task"], r["ahead"], f"{sentence}{score(r['RW'], 2)} for RW.")
        rows.append([*map(Cell, about), Cell(score(r["by"], 2))])
    caption = (
        f"Pairs whose rank by similarity is off its true rank by more than {threshold:g} of all pairs for one of HS "
        f"and RW alone: those widest apart, examples and no count; {over}."
    )
    head = ["Encoder", "Task", "Ahead", "Pair", "By"]
    return Grid("complementarity-won", caption, head, rows, left=4, title="Pairs that one reading alone ranks well")
