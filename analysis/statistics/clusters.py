"""Pairs of designs with clusters of tasks as units: tasks that share their texts are no independent witnesses."""

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.intervals import NOISE, student_reach


def membership(labels: list[str]) -> csr_array:
    """Return [clusters, tasks] of 0 and 1, sparse, clusters in order of first appearance."""
    rows, _ = pd.factorize(np.array(labels, dtype=object))
    return csr_array((np.ones(len(labels)), (rows, range(len(labels)))))


def cluster_means(differences: Floats, members: Floats | csr_array, decimals: int = 12) -> Floats:
    """Return the mean difference [P, clusters] of each cluster's tasks, of `differences` [P, tasks].

    Their signed-rank test has clusters as units.
    """
    return np.asarray(rounded(differences, decimals) @ members.T / members.sum(axis=1))


def cluster_interval(differences: Floats, members: Floats | csr_array, level: float = 0.95) -> Floats:
    """Return Student's intervals [P, 2] of the means over tasks of `differences` [P, tasks], clusters as units.

    A cluster of a share w of the tasks, whose mean is r away from the whole, adds w^2 r^2 / (1 - w) to the squared
    error; the degrees of freedom are those of that estimate where tasks are independent (Bell and McCaffrey 2002; CR2
    of Pustejovsky and Tipton 2018 for a mean). Clusters of one size: Student's interval of their means. The ends are
    nan for one cluster, and both are the mean where the clusters' means do not vary.
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
