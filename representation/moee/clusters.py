"""Agreement of two partitions of the same texts, and of the pairs that two readings fail."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, normalized_mutual_info_score

from analysis.statistics.arrays import Floats

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Agreement:
    """Of two partitions of n texts. 1 is the same partition in all of them.

    rand, mutual: adjusted Rand index and adjusted mutual information, zero on average for partitions drawn by chance;
    nmi: normalised mutual information (arithmetic mean), above zero by chance already;
    jaccard: pairs of texts together in both partitions, over pairs together in at least one;
    exact: share of texts whose clusters are matched, by the one-to-one matching of clusters with most texts in common;
    matched_jaccard: mean over matched clusters of their common texts over the texts in either.

    MoEE (arXiv 2410.10814, section 3.2) reports AMI, NMI, "Jaccard similarity" and "exact matching", "the proportion of
    data points that are grouped into identical clusters"; it defines the Jaccard similarity nowhere, so both are given.
    """

    rand: float
    mutual: float
    nmi: float
    jaccard: float
    exact: float
    matched_jaccard: float


def agreement(one: Labels, two: Labels) -> Agreement:
    """Compare two label arrays [n]; the names of labels do not matter."""
    table = contingency(one, two)
    common, first, second = matched(table)
    either = first + second - common
    return Agreement(
        rand=float(adjusted_rand_score(one, two)),
        mutual=float(adjusted_mutual_info_score(one, two)),
        nmi=float(normalized_mutual_info_score(one, two)),
        jaccard=pair_jaccard(table),
        exact=float(common.sum() / table.sum()),
        matched_jaccard=float((common / either).sum() / max(table.shape)),
    )


def contingency(one: Labels, two: Labels) -> NDArray[np.int64]:
    """Return [clusters of one, clusters of two] texts in common."""
    rows, columns = np.unique(one, return_inverse=True)[1], np.unique(two, return_inverse=True)[1]
    table = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def matched(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return common texts and both sizes of clusters matched for most texts in common (Hungarian algorithm)."""
    rows, columns = linear_sum_assignment(table, maximize=True)
    return table[rows, columns], table.sum(axis=1)[rows], table.sum(axis=0)[columns]


def pair_jaccard(table: NDArray[np.int64]) -> float:
    """Return pairs of texts together in both partitions, over those together in either; 1 where none is."""
    both, first, second = (_pairs(sizes) for sizes in (table, table.sum(axis=1), table.sum(axis=0)))
    return both / (first + second - both) if first + second else 1.0


def _pairs(sizes: NDArray[np.int64]) -> float:
    return float((sizes * (sizes - 1) / 2).sum())


def partition(vectors: NDArray[np.float32], clusters: int, seed: int) -> Labels:
    """Return [n] labels of k-means (k-means++, ten starts) on vectors [n, E] of unit length."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    labels: Labels = KMeans(clusters, n_init=10, random_state=seed).fit_predict(unit).astype(np.int64)
    return labels


@dataclass(frozen=True)
class Shares:
    """Of the pairs that at least one of two readings fails: shares, which add up to one.

    `independent`: what `one_alone + other_alone` would be if each failed as often as it does, whatever the other does.
    """

    pairs: int
    one_alone: float
    other_alone: float
    both: float
    independent: float


def deviation(similarity: Floats, truth: Floats) -> Floats:
    """Return [n] the distance of a pair's rank by similarity from its true rank, over all pairs; ties averaged."""
    found: Floats = np.abs(rankdata(similarity) - rankdata(truth)) / len(truth)
    return found


def shares(one: Floats, other: Floats, threshold: float) -> Shares:
    """Count failures, which are deviations [n] above `threshold`; NaN where neither reading fails any pair."""
    a, b = one > threshold, other > threshold
    either = int((a | b).sum())
    p, q = float(a.mean()), float(b.mean())
    union = p + q - p * q
    return Shares(
        either,
        one_alone=_share(a & ~b, either),
        other_alone=_share(b & ~a, either),
        both=_share(a & b, either),
        independent=(p + q - 2 * p * q) / union if union else float("nan"),
    )


def _share(chosen: NDArray[np.bool_], of: int) -> float:
    return float(chosen.sum() / of) if of else float("nan")
