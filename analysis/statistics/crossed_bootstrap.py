"""The bootstrap-t interval of a pair's mean difference over tasks and seeds. Why: docs/decisions/seeds.md."""

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.bootstrap_mean import FEWEST, tail_place
from analysis.statistics.resample import DRAWS, SEED, bootstrap_counts
from analysis.statistics.two_way import pair_mean_squares, total_square

Floats = NDArray[np.float64]


def crossed_bootstrap(differences: Floats, level: float = 0.95, draws: int = DRAWS) -> Floats:
    """Return the intervals [P, 2] of the means of the tables `differences` [P, T tasks, S seeds], two seeds or more.

    Tasks and seeds are drawn, each draw of a seed for all tasks at once, since a run is scored on every task (the
    pigeonhole bootstrap of a crossed table, Owen 2007). Each resample gives t* = (its mean - the mean) / its error by
    the two-way random model, and the ends follow from the quantiles of t* as in `bootstrap_mean`. A resample without
    spread has an infinite t*. The ends are nan below six tasks, and both are the mean where nothing varies.
    """
    pairs, tasks, seeds = differences.shape
    ends = np.full((pairs, 2), np.nan)
    if tasks < FEWEST or not draws:
        return ends
    by_task = np.concatenate(list(bootstrap_counts(tasks, draws)))
    by_seed = np.concatenate(list(bootstrap_counts(seeds, draws, SEED + 1)))
    below = tail_place(draws, level)
    means = differences.mean(axis=(1, 2))
    errors = np.sqrt(total_square(pair_mean_squares(differences)) / (tasks * seeds))
    for k, (table, mean, error) in enumerate(zip(differences, means, errors, strict=True)):
        if error > 0:
            t = np.partition(studentised(table - mean, by_task, by_seed), [below, draws - 1 - below])
            ends[k] = mean - t[draws - 1 - below] * error, mean - t[below] * error
        else:
            ends[k] = mean
    return ends


def studentised(table: Floats, by_task: Floats, by_seed: Floats) -> Floats:
    """Return t* [draws] of a table [T, S] less its mean; by_task [draws, T], by_seed [draws, S]: how often each came.

    The mean squares of a resample follow from its sums of squared task means, seed means and cells.
    """
    tasks, seeds = table.shape
    task_means, seed_means = by_seed @ table.T / seeds, by_task @ table / tasks
    mean = (by_seed * seed_means).sum(axis=1) / seeds
    task = (by_task * task_means**2).sum(axis=1)
    seed = (by_seed * seed_means**2).sum(axis=1)
    cell = (by_seed * (by_task @ table**2)).sum(axis=1)
    both = tasks * seeds * mean**2
    squares = np.stack(
        [
            (seeds * task - both) / (tasks - 1),
            (tasks * seed - both) / (seeds - 1),
            (cell - seeds * task - tasks * seed + both) / ((tasks - 1) * (seeds - 1)),
        ]
    )
    total = total_square(np.maximum(squares, 0.0))
    spread = total > 1e-14 * cell  # what is left of equal values is rounding
    t = mean / np.sqrt(np.where(spread, total, np.inf) / (tasks * seeds))
    return np.where(spread | (cell == 0), t, np.copysign(np.inf, mean))
