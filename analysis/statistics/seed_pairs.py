"""One pair of designs over tasks and seeds: intervals of its mean difference, and what the seeds add to its error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.resample import DRAWS, SEED, bootstrap_counts, percentile_interval
from analysis.statistics.variance import NOISE, REST, mean_squares

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SeedPairs:
    """Results for P pairs; the intervals are [P, 2] (95 %), the others [P]."""

    difference: Floats
    over_tasks: Floats
    over_tasks_and_seeds: Floats
    by_model: Floats
    by_pooled: Floats
    seed_share: Floats
    seeds_agreeing: NDArray[np.int64]


def seed_pairs(scores: Floats, first: NDArray[np.int64], second: NDArray[np.int64], draws: int = DRAWS) -> SeedPairs:
    """Compare designs `second` minus `first` [P] of `scores` [designs, tasks, seeds], two tasks and seeds or more.

    `over_tasks`: bootstrap of the tasks, seed means as scores. `over_tasks_and_seeds`: tasks and seeds drawn, each draw
    of a seed for all tasks and both designs at once, since a run is scored on every task and a seed means the same
    batches for both (the pigeonhole bootstrap of a crossed table, Owen 2007). `by_model`, `by_pooled`, `seed_share`
    (with the seeds of all designs): see `model_intervals`. `seeds_agreeing`: seeds whose mean difference over tasks
    has the sign of the whole.
    """
    differences = scores[second] - scores[first]
    tasks, crossed = resampled_means(scores, draws)
    per_seed = differences.mean(axis=1)
    whole = differences.mean(axis=(1, 2))
    model, _, pooled, share = model_intervals(scores, first, second)
    return SeedPairs(
        whole,
        pair_intervals(tasks, first, second),
        pair_intervals(crossed, first, second),
        model,
        pooled,
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


def model_intervals(scores: Floats, first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[Floats, ...]:
    """Return the 95 % intervals by the model [P, 2], the seeds' share [P], and the same with the seeds of all designs.

    Model of a pair: difference = mean + task + seed + rest, all random, so the variance of the mean of T tasks and S
    seeds is estimated without bias by (MS_task + MS_seed - MS_rest) / (T S). With few seeds the MS_seed of one pair is
    worth little (S - 1 degrees of freedom); pooled, it is twice the mean square of design x seed over all designs, with
    (designs - 1)(S - 1), which takes all designs to be as sensitive to the seed. The share is the part of the squared
    standard error that more seeds would remove, (MS_seed / (T S)) / the whole: the seeds' own effect and the rest.
    """
    _, tasks, seeds = scores.shape
    designs = len(scores) - 1
    differences = scores[second] - scores[first]
    own = pair_mean_squares(differences)
    squares = mean_squares(scores)
    pooled = np.stack([own[0], *(np.full(len(first), 2 * squares[name][1]) for name in ("design x seed", REST))])
    one, of_all = (
        np.array([tasks - 1, n * (seeds - 1), n * (tasks - 1) * (seeds - 1)], dtype=np.float64) for n in (1, designs)
    )
    mean = differences.mean(axis=(1, 2))
    size = tasks * seeds
    return (*_interval(mean, own, one, size), *_interval(mean, pooled, of_all, size))


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


def _interval(mean: Floats, ms: Floats, df: Floats, size: int) -> tuple[Floats, Floats]:
    """Return the intervals [P, 2] and the seeds' share [P] from mean squares `ms` [3, P] with `df` [3].

    Degrees of freedom of the sum by Satterthwaite (1946); the sum is never taken to be less than its largest part.
    """
    from scipy.stats import t as student

    total = ms[0] + ms[1] - ms[2]
    plain = total >= ms.max(axis=0)
    total = np.where(plain, total, ms.max(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(plain, total**2 / (ms**2 / df[:, None]).sum(axis=0), df[ms.argmax(axis=0)])
        reach = np.where(total > 0, student.ppf(0.975, np.maximum(freedom, 1.0)) * np.sqrt(total / size), 0.0)
        share = np.where(total > 0, np.minimum(1.0, ms[1] / total), 0.0)
    return np.stack([mean - reach, mean + reach], axis=1), share
