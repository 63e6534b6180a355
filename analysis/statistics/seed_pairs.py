"""One pair of designs over tasks and seeds: intervals of its mean difference, and what the seeds add to its error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.student import student_interval
from analysis.statistics.two_way import pair_mean_squares, total_square
from analysis.statistics.variance import REST, mean_squares

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SeedPairs:
    """Results for P pairs; the intervals are [P, 2], the others [P]."""

    difference: Floats
    over_tasks: Floats
    by_model: Floats
    by_pooled: Floats
    seed_share: Floats
    seeds_agreeing: NDArray[np.int64]


def seed_pairs(scores: Floats, first: NDArray[np.int64], second: NDArray[np.int64], level: float = 0.95) -> SeedPairs:
    """Compare designs `second` minus `first` [P] of `scores` [designs, tasks, seeds], two tasks and seeds or more.

    `over_tasks`: Student's interval over tasks, seed means as scores, as for the pairs. `by_model` (over tasks and the
    pair's own seeds), `by_pooled`, `seed_share` (with the seeds of all designs): see `model_intervals`.
    `seeds_agreeing`: seeds whose mean difference over tasks has the sign of the whole.
    """
    differences = scores[second] - scores[first]
    per_seed = differences.mean(axis=1)
    whole = differences.mean(axis=(1, 2))
    model, _, pooled, share = model_intervals(scores, first, second, level)
    return SeedPairs(
        whole,
        np.stack(student_interval(differences.mean(axis=2), level), axis=1),
        model,
        pooled,
        share,
        (np.sign(per_seed) == np.sign(whole)[:, None]).sum(axis=1),
    )


def model_intervals(
    scores: Floats, first: NDArray[np.int64], second: NDArray[np.int64], level: float = 0.95
) -> tuple[Floats, ...]:
    """Return the intervals by the model [P, 2], the seeds' share [P], and the same with the seeds of all designs.

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
    return (*_interval(mean, own, one, size, level), *_interval(mean, pooled, of_all, size, level))


def _interval(mean: Floats, ms: Floats, df: Floats, size: int, level: float) -> tuple[Floats, Floats]:
    """Return the intervals [P, 2] and the seeds' share [P] from mean squares `ms` [3, P] with `df` [3].

    Degrees of freedom of the sum by Satterthwaite (1946).
    """
    from scipy.stats import t as student

    total = total_square(ms)
    plain = ms[0] + ms[1] - ms[2] >= ms.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(plain, total**2 / (ms**2 / df[:, None]).sum(axis=0), df[ms.argmax(axis=0)])
        reach = np.where(total > 0, student.ppf((1 + level) / 2, np.maximum(freedom, 1.0)) * np.sqrt(total / size), 0.0)
        share = np.where(total > 0, np.minimum(1.0, ms[1] / total), 0.0)
    return np.stack([mean - reach, mean + reach], axis=1), share
