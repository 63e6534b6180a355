"""How much the tasks of one group resemble one another: the intraclass correlation of their differences."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def intraclass(differences: Floats, groups: list[list[int]]) -> Floats:
    """Return ICC(1) [P] of each row of `differences` [P, n] over `groups` (columns of each), one-way random effects.

    (MSB - MSW) / (MSB + (m - 1) MSW) with m the mean group size corrected for unequal groups (Shrout and Fleiss 1979;
    Donner 1986). 0 on average where groups say nothing, negative where tasks of a group differ more than others; nan
    where there is one group, only groups of one, or no difference.
    """
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    n, k = sizes.sum(), len(groups)
    if k < 2 or n <= k:
        return np.full(len(differences), np.nan)
    d = differences[:, [column for group in groups for column in group]]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    means = np.add.reduceat(d, starts, axis=1) / sizes
    between = (sizes * (means - d.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / (k - 1)
    within = ((d - np.repeat(means, sizes.astype(int), axis=1)) ** 2).sum(axis=1) / (n - k)
    m = (n - (sizes**2).sum() / n) / (k - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((between - within) / (between + (m - 1) * within))
