"""Pairs of designs with clusters of tasks as units: tasks that share their texts are no independent witnesses."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.intervals import NOISE, HodgesLehmann, student_reach, typical_difference
from analysis.statistics.sign_flip import SignFlips, flip_means
from analysis.statistics.wilcoxon import SignedRank, signed_rank


@dataclass(frozen=True)
class ClusterPairs:
    """Results for P pairs: the signed-rank test of the cluster means and the flips of whole clusters."""

    difference: Floats  # mean of the cluster means
    ranks: SignedRank
    typical: HodgesLehmann  # of the cluster means, what `ranks` is about
    flips: SignFlips


def membership(labels: list[str]) -> csr_array:
    """Return [clusters, tasks] of 0 and 1, sparse, clusters in order of first appearance."""
    rows, _ = pd.factorize(np.array(labels, dtype=object))
    return csr_array((np.ones(len(labels)), (rows, range(len(labels)))))


def cluster_pairs(
    differences: Floats,
    members: Floats | csr_array,
    zeros: str = "wilcox",
    decimals: int = 12,
    alpha: float = 0.05,
) -> ClusterPairs:
    """Test `differences` [P, tasks] with the clusters of `members` [clusters, tasks] as units.

    Signed-rank: each cluster is one observation, the mean of its differences; the interval of `typical` has the level
    1 - alpha. Flips: the statistic is the mean over tasks; the sign of a whole cluster is flipped, so nothing is
    assumed about dependence within it (Winkler et al. 2015, exchangeability blocks), and a cluster of many tasks weighs
    as many tasks.
    """
    sums = rounded(differences, decimals) @ members.T
    means = sums / members.sum(axis=1)
    ranks = signed_rank(means, zeros, decimals)
    typical = typical_difference(means, ranks, alpha, zeros, decimals)
    return ClusterPairs(means.mean(axis=1), ranks, typical, flip_means(sums))


def cluster_interval(differences: Floats, members: Floats | csr_array, level: float = 0.95) -> Floats:
    """Return Student's intervals [P, 2] of the means over tasks of `differences` [P, tasks], clusters as units.

    A cluster of a share w of the tasks, whose mean is r away from the whole, adds w^2 r^2 / (1 - w) to the squared
    error; the degrees of freedom are those of that estimate where tasks are independent (Bell and McCaffrey 2002; CR2
    of Pustejovsky and Tipton 2018 for a mean). Clusters of one size: Student's interval of their means. Nothing is
    drawn at random. The ends are nan for one cluster, and both are the mean where the clusters' means do not vary.
    """
    sizes = members.sum(axis=1)
    shares = sizes / sizes.sum()
    means = differences @ members.T / sizes
    whole = means @ shares
    if len(shares) < 2:
        return np.full((len(differences), 2), np.nan)
    weights = shares**2 / (1 - shares)
    away = means - whole[:, None]
    error = np.sqrt(away**2 @ weights)
    error = np.where(error > NOISE * np.abs(differences).max(axis=1), error, 0.0)
    freedom = 1 / ((shares**2).sum() + weights.sum() ** 2 - (weights**2).sum())
    reach = student_reach(error, freedom, level)
    return np.stack([whole - reach, whole + reach], axis=1)
