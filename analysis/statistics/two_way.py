"""The mean squares of a pair's differences over tasks x seeds, and the error of their mean in the random model."""

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.variance import NOISE

Floats = NDArray[np.float64]


def pair_mean_squares(differences: Floats) -> Floats:
    """Return the mean squares [task | seed | rest, P] of the two-way tables `differences` [P, T tasks, S seeds]."""
    _, tasks, seeds = differences.shape
    mean = differences.mean(axis=(1, 2))[:, None]
    by_task, by_seed = differences.mean(axis=2), differences.mean(axis=1)
    left = differences - by_task[:, :, None] - by_seed[:, None, :] + mean[:, :, None]
    found = np.stack(
        [
            seeds * ((by_task - mean) ** 2).sum(axis=1) / (tasks - 1),
            tasks * ((by_seed - mean) ** 2).sum(axis=1) / (seeds - 1),
            (left**2).sum(axis=(1, 2)) / ((tasks - 1) * (seeds - 1)),
        ]
    )
    return np.where(found < NOISE, 0.0, found)


def total_square(ms: Floats) -> Floats:
    """Return T S times the squared error of the mean, [...], from mean squares `ms` [task | seed | rest, ...].

    MS_task + MS_seed - MS_rest is without bias where tasks, seeds and rest are random; it is never taken to be less
    than its largest part.
    """
    return np.maximum(ms[0] + ms[1] - ms[2], ms.max(axis=0))
