"""Student's interval of the mean difference over tasks. Why this one: docs/decisions/pair-statistics.md."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NOISE = 1e-12  # of the largest difference: a smaller spread is what rounding leaves of equal values


def student_interval(differences: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the ends [P] of the interval of the mean of each row of `differences` [P, n] (Student 1908).

    Nothing is drawn at random. The ends are nan for one task, and both are the mean where the differences do not vary.
    """
    from scipy.special import stdtrit

    mean, error = mean_and_error(differences)
    freedom = max(1, differences.shape[1] - 1)
    reach = np.where(error > 0, stdtrit(freedom, (1 + level) / 2) * error, error)  # error is 0 or nan elsewhere
    return mean - reach, mean + reach


def mean_and_error(differences: Floats) -> tuple[Floats, Floats]:
    """Return the mean [P] of each row of [P, n] and its standard error [P]: 0 without spread, nan for one task."""
    count, n = differences.shape
    mean = differences.mean(axis=1)
    if n < 2:
        return mean, np.full(count, np.nan)
    spread = differences.std(axis=1, ddof=1)
    spread = np.where(spread > NOISE * np.abs(differences).max(axis=1), spread, 0.0)
    return mean, np.asarray(spread / np.sqrt(n), dtype=np.float64)
