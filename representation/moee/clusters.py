"""Agreement of two partitions of the same texts, topics of their clusters, and pairs that two variants fail."""

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import entropy, rankdata
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from analysis.statistics.arrays import Floats

Labels = NDArray[np.int64]


def agreement(one: Labels, two: Labels) -> dict[str, float]:
    """Compare two label arrays [n], partitions of n texts; the names of labels do not matter. 1: the same partition.

    rand, mutual: adjusted Rand index and adjusted mutual information, zero on average for partitions drawn by chance;
    nmi: normalised mutual information (arithmetic mean), above zero by chance already;
    jaccard: pairs of texts together in both partitions, over pairs together in at least one;
    exact: share of texts whose clusters are matched, by the one-to-one matching of clusters with most texts in common;
    matched_jaccard: mean over matched clusters of their common texts over the texts in either.

    MoEE (arXiv 2410.10814, section 3.2) reports AMI, NMI, "Jaccard similarity" and "exact matching", "the proportion of
    data points that are grouped into identical clusters"; it defines the Jaccard similarity nowhere, so both are given.
    """
    table = contingency_matrix(one, two)
    rows, columns = linear_sum_assignment(table, maximize=True)  # the Hungarian algorithm
    common = table[rows, columns]
    either = table.sum(axis=1)[rows] + table.sum(axis=0)[columns] - common
    return {
        "rand": float(adjusted_rand_score(one, two)),
        "mutual": float(adjusted_mutual_info_score(one, two)),
        "nmi": shared_information(table),
        "jaccard": pair_jaccard(table),
        "exact": float(common.sum() / table.sum()),
        "matched_jaccard": float((common / either).sum() / max(table.shape)),
    }


def shared_information(table: NDArray[Any]) -> float:
    """Return 2 I(A; B) / (H(A) + H(B)), the normalised mutual information of counts [A, B]; 1 where both are one."""
    most = entropy(table.sum(axis=0)) + entropy(table.sum(axis=1))
    return float(2 * mutual_info_score(None, None, contingency=table) / most) if most else 1.0


def pair_jaccard(table: NDArray[np.int64]) -> float:
    """Return pairs of texts together in both partitions, over those together in either; 1 where none is.

    table: [clusters of one, clusters of the other], texts in common.
    """
    sides = table, table.sum(axis=1), table.sum(axis=0)
    both, first, second = (float((sizes * (sizes - 1) / 2).sum()) for sizes in sides)
    return both / (first + second - both) if first + second else 1.0


def partition(vectors: NDArray[np.float32], clusters: int, seed: int) -> Labels:
    """Return [n] labels of k-means (k-means++, ten starts) on vectors [n, E] of unit length."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    labels: Labels = KMeans(clusters, n_init=10, random_state=seed).fit_predict(unit).astype(np.int64)
    return labels


def deviation(similarity: Floats, truth: Floats) -> Floats:
    """Return [n] the distance of a pair's rank by similarity from its true rank, over all pairs; ties averaged."""
    apart: Floats = np.abs(rankdata(similarity) - rankdata(truth)) / len(truth)
    return apart


def shares(one: Floats, other: Floats, threshold: float) -> dict[str, float]:
    """Return of the pairs that at least one of two variants fails their number, and shares of them, which add up to 1.

    one, other: deviations [n], of which those above `threshold` are failures; NaN where neither variant fails any pair.
    independent: what `one_alone + other_alone` would be if each failed as often as it does, whatever the other does.
    """
    a, b = one > threshold, other > threshold
    either = int((a | b).sum())
    p, q = float(a.mean()), float(b.mean())
    union = p + q - p * q
    parts = {"one_alone": a & ~b, "other_alone": b & ~a, "both": a & b}
    return {
        "pairs": either,
        **{name: float(failed.sum() / either) if either else nan for name, failed in parts.items()},
        "independent": (p + q - 2 * p * q) / union if union else nan,
    }


def class_tf_idf(counts: NDArray[np.int64]) -> Floats:
    """Return [C, V] weights tf_{t,c} log(1 + A / tf_t) of the words of C clusters; counts: [C, V], how often.

    tf_t: how often a word stands in all clusters, at least once; A: words of a cluster on average. The class-based
    tf-idf of BERTopic (Grootendorst, arXiv 2203.05794, section 3.3).
    """
    weights: Floats = counts * np.log1p(counts.sum() / len(counts) / counts.sum(axis=0))
    return weights


def topics(texts: Sequence[str], labels: Labels, words: int) -> list[dict[str, Any]]:
    """Return of each cluster, the largest first, its number of texts and its `words` words of highest weight.

    labels: [n] the cluster of each text. Words are those of scikit-learn's `CountVectorizer` without its English stop
    words; of equal weights the first in the alphabet.
    """
    counter = CountVectorizer(stop_words="english")
    of_texts = counter.fit_transform(texts)
    names, sizes = np.unique(labels, return_counts=True)
    counts = np.stack([np.asarray(of_texts[labels == name].sum(axis=0)).ravel() for name in names])
    weights, vocabulary = class_tf_idf(counts), counter.get_feature_names_out()
    rows = []
    for row in np.argsort(-sizes, kind="stable"):
        best = [k for k in np.argsort(-weights[row], kind="stable")[:words] if counts[row, k]]
        rows.append({"texts": int(sizes[row]), "words": ", ".join(vocabulary[best])})
    return rows
