"""The posterior of the mean difference over tasks: Student's distribution. Why: docs/decisions/equivalence.md."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.student import mean_and_error

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """For P pairs, each an array of length P: posterior probabilities that the mean difference is below -margin, within
    the margin, above it. They add up to 1; nan for one task."""

    worse: Floats
    equivalent: Floats
    better: Floats


def mean_posterior(differences: Floats, margin: float, decimals: int = 12) -> Posterior:
    """Return where the mean of each row of `differences` [P, n] lies, as seen from the region [-margin, margin].

    With the prior of Jeffreys for a normal sample, flat in the mean and in the logarithm of the spread, the posterior
    of the mean is Student's t with n - 1 degrees of freedom about the mean seen, with its standard error (Box and Tiao
    1973, section 2.4). Its middle 95 % are `student_interval`. Without spread all of it lies at the mean seen; a mean
    on the edge belongs to the region.
    """
    from scipy.special import stdtr

    mean, error = mean_and_error(np.asarray(np.round(differences, decimals), dtype=np.float64))
    freedom = max(1, differences.shape[1] - 1)
    seen = np.round(mean, decimals)
    with np.errstate(divide="ignore", invalid="ignore"):
        worse = np.where(error == 0, seen < -margin, stdtr(freedom, (-margin - mean) / error))
        better = np.where(error == 0, seen > margin, stdtr(freedom, (mean - margin) / error))
    return Posterior(worse, 1.0 - worse - better, better)
