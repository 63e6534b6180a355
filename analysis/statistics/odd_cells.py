"""Single scores far off: from their task's other scores and from their model's own profile. Robust, so few do not hide.

docs/decisions/odd-cells.md gives the reasons.
"""

from dataclasses import dataclass

import numpy as np

from analysis.statistics.arrays import Bools, Floats

FAR = 5.0  # robust standard deviations, of the task and of the profile both
LEAST = 0.1  # ten points of 100: below it no score is called far off, however alike the others are
FEWEST_MODELS, FEWEST_TASKS = 3, 5
ROUNDS = 20  # of the median polish
TO_SD = 1.4826  # a normal curve's SD over its median absolute deviation


@dataclass(frozen=True)
class OddCells:
    """For scores [tasks, models], each [tasks, models] but `median` [tasks].

    `odd`: far off; `expected`: what task and model would lead one to expect; `from_task`, `from_profile`: the distances
    in robust standard deviations, nan where they cannot be told.
    """

    odd: Bools
    median: Floats
    expected: Floats
    from_task: Floats
    from_profile: Floats


def odd_cells(scores: Floats) -> OddCells:
    """Find the scores [tasks, models], nan where there is none, that fit neither their task nor their model.

    A score is odd where it is more than 5 robust standard deviations from its task's median, and more than 5 and at
    least .1 from task effect + model effect, which a median polish finds (Tukey 1977, chapter 11). The robust standard
    deviation is 1.4826 times the median absolute deviation: of the task's scores, and of the model's distances from
    its profile, each no smaller than that of all such distances, since that of few values may be 0 by chance. Tasks
    with fewer than three scores and models with fewer than five can have no odd score.
    """
    known = ~np.isnan(scores)
    enough = (known.sum(axis=1) >= FEWEST_MODELS)[:, None] & (known.sum(axis=0) >= FEWEST_TASKS)[None]
    table = np.where(enough, scores, np.nan)
    if not enough.any():
        empty = np.full(scores.shape, np.nan)
        return OddCells(np.zeros(scores.shape, dtype=bool), np.full(len(scores), np.nan), empty, empty, empty)
    left = table  # less task effects and model effects, median by median
    for _ in range(ROUNDS):
        left = left - _medians(left)[:, None]
        left = left - _medians(left.T)[None]
    median, overall = _medians(table), _spread(left.ravel()[None])
    by_task, by_model = np.maximum(_spread(table), overall), np.maximum(_spread(left.T), overall)
    with np.errstate(divide="ignore", invalid="ignore"):
        from_task = (table - median[:, None]) / by_task[:, None]
        from_profile = left / by_model[None]
    odd = (np.abs(from_task) > FAR) & (np.abs(from_profile) > FAR) & (np.abs(left) >= LEAST)
    return OddCells(odd, median, table - left, from_task, from_profile)


def _medians(rows: Floats) -> Floats:
    """Return the median of each row's known values, nan where there are none."""
    ordered, known = np.sort(rows, axis=1), (~np.isnan(rows)).sum(axis=1)  # nan comes last
    row = np.arange(len(rows))
    return np.asarray((ordered[row, (known - 1) // 2] + ordered[row, known // 2]) / 2)


def _spread(rows: Floats) -> Floats:
    return TO_SD * _medians(np.abs(rows - _medians(rows)[:, None]))
