"""Pairs of designs with clusters of tasks as the units: tasks that share their texts are no independent witnesses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.bootstrap_mean import FEWEST, tail_place
from analysis.statistics.flip_means import FlipMeans, flip_means
from analysis.statistics.resample import DRAWS, bootstrap_counts
from analysis.statistics.wilcoxon import SignedRank, signed_rank

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClusterPairs:
    """Results for P pairs: the signed-rank test of the cluster means and the flips of whole clusters."""

    difference: Floats  # mean of the cluster means
    ranks: SignedRank
    flips: FlipMeans


def membership(labels: list[str]) -> Floats:
    """Return [clusters, tasks] of 0 and 1, clusters in order of first appearance."""
    names = list(dict.fromkeys(labels))
    return np.array([[float(label == name) for label in labels] for name in names])


def cluster_pairs(differences: Floats, members: Floats, zeros: str = "wilcox", decimals: int = 12) -> ClusterPairs:
    """Test `differences` [P, tasks] with the clusters of `members` [clusters, tasks] as units.

    Signed-rank: each cluster is one observation, the mean of its differences. Flips: the statistic is the mean over
    tasks; the sign of a whole cluster is flipped, so nothing is assumed about dependence within it (Winkler et al.
    2015, exchangeability blocks), and a cluster of many tasks weighs as many tasks.
    """
    sums = np.round(differences, decimals) @ members.T
    means = sums / members.sum(axis=1)
    return ClusterPairs(means.mean(axis=1), signed_rank(means, zeros, decimals), flip_means(sums))


def cluster_bootstrap(differences: Floats, members: Floats, level: float = 0.95, draws: int = DRAWS) -> Floats:
    """Return the bootstrap-t intervals [P, 2] of the means over tasks of `differences` [P, tasks].

    Whole clusters are drawn with all their tasks, as many as there are; the mean is over the tasks drawn, its error
    that of a ratio of two means over clusters, sum and size (Davison and Hinkley 1997, 3.8; Cochran 1977, 6.3). With
    every task its own cluster, or all of one size, it is `bootstrap_mean` of the cluster means. The ends are nan below
    six clusters, and both are the mean where the clusters' means do not vary.
    """
    n, pairs = len(members), len(differences)
    ends = np.full((pairs, 2), np.nan)
    if n < FEWEST:
        return ends
    counts = np.concatenate(list(bootstrap_counts(n, draws)))
    below, sizes = tail_place(draws, level), members.sum(axis=1)
    for k, sums in enumerate(differences @ members.T):
        mean = sums.sum() / sizes.sum()
        centred = sums - mean * sizes
        error = np.sqrt((centred**2).sum() * n / (n - 1)) / sizes.sum()
        if error > 1e-12 * np.abs(sums).sum() / sizes.sum():
            t = np.partition(_studentised(centred, sizes, counts), [below, draws - 1 - below])
            ends[k] = mean - t[draws - 1 - below] * error, mean - t[below] * error
        else:
            ends[k] = mean
    return ends


def _studentised(centred: Floats, sizes: Floats, counts: Floats) -> Floats:
    """Return t* [draws] of sums less mean x size [clusters]; a resample without spread has an infinite one."""
    n = len(sizes)
    total, drawn = counts @ centred, counts @ sizes
    mean = total / drawn
    square = counts @ centred**2
    spread = square - 2 * mean * (counts @ (centred * sizes)) + mean**2 * (counts @ sizes**2)
    varies = spread > 1e-14 * square
    t = total / np.sqrt(np.where(varies, spread, np.inf) * n / (n - 1))
    return np.where(varies | (square == 0), t, np.copysign(np.inf, mean))
