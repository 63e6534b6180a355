"""One pair of designs over tasks and seeds: intervals of its mean difference, and what the seeds add to its error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.resample import DRAWS, SEED, bootstrap_counts, percentile_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SeedPairs:
    """Results for P pairs; the intervals are [P, 2] (95 %), the others [P]."""

    difference: Floats
    over_tasks: Floats
    over_tasks_and_seeds: Floats
    by_model: Floats
    seed_share: Floats
    seeds_agreeing: NDArray[np.int64]


def seed_pairs(scores: Floats, first: NDArray[np.int64], second: NDArray[np.int64], draws: int = DRAWS) -> SeedPairs:
    """Compare designs `second` minus `first` [P] of `scores` [designs, tasks, seeds], two tasks and seeds or more.

    `over_tasks`: bootstrap of the tasks, seed means as scores. `over_tasks_and_seeds`: tasks and seeds drawn, each draw
    of a seed for all tasks and both designs at once, since a run is scored on every task and a seed means the same
    batches for both (the pigeonhole bootstrap of a crossed table, Owen 2007). `by_model`: the t interval of the
    two-way random model of the differences, see `model_interval`. `seeds_agreeing`: seeds whose mean difference over
    tasks has the sign of the whole.
    """
    differences = scores[second] - scores[first]
    tasks, crossed = resampled_means(scores, draws)
    per_seed = differences.mean(axis=1)
    whole = differences.mean(axis=(1, 2))
    model, share = model_interval(differences)
    return SeedPairs(
        whole,
        pair_intervals(tasks, first, second),
        pair_intervals(crossed, first, second),
        model,
        share,
        (np.sign(per_seed) == np.sign(whole)[:, None]).sum(axis=1),
    )


def resampled_means(scores: Floats, draws: int = DRAWS) -> tuple[Floats, Floats]:
    """Return the designs' means [designs, draws] over resampled tasks, and over resampled tasks and seeds."""
    designs, tasks, seeds = scores.shape
    flat = scores.transpose(1, 0, 2).reshape(tasks, designs * seeds) / tasks
    per_seed = np.concatenate([counts @ flat for counts in bootstrap_counts(tasks, draws)])
    per_seed = per_seed.reshape(draws, designs, seeds)
    weights = np.concatenate(list(bootstrap_counts(seeds, draws, SEED + 1))) / seeds
    return per_seed.mean(axis=2).T, np.einsum("bds,bs->db", per_seed, weights)


def pair_intervals(means: Floats, first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    """Return [P, 2] from the designs' resampled means [designs, draws]; a few pairs at a time to bound the memory."""
    size = max(1, 4_000_000 // means.shape[1])
    parts = [slice(start, start + size) for start in range(0, len(first), size)]
    return np.concatenate([percentile_interval(means[second[part]] - means[first[part]]) for part in parts])


def model_interval(differences: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % intervals [P, 2] of the means of `differences` [P, T tasks, S seeds], and the seeds' share [P].

    Model: difference = mean + task + seed + rest, all random. The variance of the mean is estimated without bias by
    (MS_task + MS_seed - MS_rest) / (T S), with Satterthwaite's (1946) degrees of freedom for that sum; it is never
    taken to be less than the largest of the three alone. The share is the part of the squared standard error that more
    seeds would remove, (MS_seed / (T S)) / the whole: seeds' own effect and the rest, which one seed has on one task.
    """
    from scipy.stats import t as student

    _, tasks, seeds = differences.shape
    mean = differences.mean(axis=(1, 2))
    by_task, by_seed = differences.mean(axis=2), differences.mean(axis=1)
    left = differences - by_task[:, :, None] - by_seed[:, None, :] + mean[:, None, None]
    df = np.array([tasks - 1, seeds - 1, (tasks - 1) * (seeds - 1)])
    squares = np.stack(
        [
            seeds * ((by_task - mean[:, None]) ** 2).sum(axis=1),
            tasks * ((by_seed - mean[:, None]) ** 2).sum(axis=1),
            (left**2).sum(axis=(1, 2)),
        ]
    )
    ms = squares / df[:, None]
    ms[ms < 1e-24] = 0.0
    total = ms[0] + ms[1] - ms[2]
    plain = total >= ms.max(axis=0)
    largest = ms.argmax(axis=0)
    total = np.where(plain, total, ms.max(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(plain, total**2 / (ms**2 / df[:, None]).sum(axis=0), df[largest])
        reach = np.where(total > 0, student.ppf(0.975, np.maximum(freedom, 1.0)) * np.sqrt(total / (tasks * seeds)), 0)
        share = np.where(total > 0, np.minimum(1.0, ms[1] / total), 0.0)
    return np.stack([mean - reach, mean + reach], axis=1), share
