"""The variance of scores split into design, task, seed and their interactions: a random-effects analysis of variance.

The table is balanced and crossed: one training run (design, seed) is scored on every task, and a seed means the same
batches for every design. Each component follows from the mean squares by their expectations (Searle, Casella and
McCulloch 1992, chapter 4). What is left within a cell cannot be told from the three-way interaction.
"""

from dataclasses import dataclass

import numpy as np

from analysis.statistics.arrays import Floats

AXES = ("design", "task", "seed")
REST = "design x task x seed"
ORDER = ("design", "task", "seed", "design x task", "design x seed", "task x seed", REST)
NOISE = 1e-24  # squares below it are float noise of scores within 1


@dataclass(frozen=True)
class Component:
    """`estimate` may be negative; `variance` is it, or 0 where it is; `share` is that of the sum of the variances."""

    df: int
    mean_square: float
    estimate: float
    variance: float
    share: float


def components(scores: Floats) -> dict[str, Component]:
    """Return the components of `scores` [designs, tasks, seeds] by the names in `ORDER`; each axis of two or more.

    With all effects random, E[MS] of a term is the sum of the components that contain it, each times the product of
    the sizes of the axes outside it. So a component is the alternating sum of the mean squares of the terms around it,
    divided by that product: design = (MS_d - MS_dt - MS_ds + MS_dts) / (tasks x seeds).
    """
    squares = mean_squares(scores)
    sizes = dict(zip(AXES, scores.shape, strict=True))
    axes_of = {term: set(term.split(" x ")) for term in squares}
    estimates = {}
    for term, axes in axes_of.items():
        around = [(other, theirs - axes) for other, theirs in axes_of.items() if axes <= theirs]
        estimate = sum((-1) ** len(more) * squares[other][1] for other, more in around)
        estimates[term] = float(estimate / np.prod([sizes[axis] for axis in AXES if axis not in axes]))
    variances = {term: max(0.0, estimate) for term, estimate in estimates.items()}
    total = sum(variances.values())
    return {
        term: Component(*squares[term], estimates[term], variance, variance / total if total else 0.0)
        for term, variance in variances.items()
    }


def mean_squares(scores: Floats) -> dict[str, tuple[int, float]]:
    """Return term -> (degrees of freedom, mean square) for [designs, tasks, seeds]."""
    squares = {}
    for term in ORDER:
        axes = [AXES.index(name) for name in term.split(" x ")]
        effect = scores.mean(axis=tuple(k for k in range(3) if k not in axes), keepdims=True)
        for k in axes:
            effect = effect - effect.mean(axis=k, keepdims=True)
        df = int(np.prod([scores.shape[k] - 1 for k in axes]))
        square = float(scores.size / effect.size * (effect**2).sum() / df)
        squares[term] = (df, 0.0 if square < NOISE else square)
    return squares


def seed_standard_error(parts: dict[str, Component], tasks: int, seeds: int) -> float:
    """Return the standard error of the difference of two designs' means over `tasks` that comes from seeds alone.

    Both designs use the same `seeds` seeds, so what a seed does to all designs (seed, task x seed) cancels; what is
    left is 2 (design x seed + rest / tasks) / seeds.
    """
    variance = parts["design x seed"].variance + parts[REST].variance / tasks
    return float(np.sqrt(2 * variance / seeds))


def task_standard_error(parts: dict[str, Component], tasks: int) -> float:
    """Return the standard error of such a difference that comes from the choice of tasks alone."""
    return float(np.sqrt(2 * parts["design x task"].variance / tasks))


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
