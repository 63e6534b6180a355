"""Pairs of designs with clusters of tasks as the units: tasks that share their texts are no independent witnesses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def cluster_bootstrap(scores: Floats, members: Floats, draws: int = DRAWS) -> Floats:
    """Return the designs' means over tasks [designs, draws] in resamples of whole clusters.

    scores: [tasks, designs]; members: [clusters, tasks]. A resample draws as many clusters as there are and takes all
    their tasks; the mean is over the tasks drawn.
    """
    sums, sizes = members @ scores, members.sum(axis=1)
    return np.concatenate(
        [(counts @ sums) / (counts @ sizes)[:, None] for counts in bootstrap_counts(len(members), draws)]
    ).T


def task_bootstrap(scores: Floats, draws: int = DRAWS) -> Floats:
    """Return the same with every task drawn for itself."""
    return cluster_bootstrap(scores, np.eye(len(scores)), draws)
