"""The primary test: the mean difference of two designs over tasks and seeds, both random and crossed.

A score is design + task + design x task + a seed of that design + a rest. Each design has its own spread over seeds,
and its seeds are its own: run means of one seed do not go together between designs, so pairing them buys nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.intervals import student_reach

FEWEST_SEEDS = 3  # of each design, for a statement about designs
FEWEST_TASKS = 5  # with fewer and many seeds the degrees of freedom of tasks are too rough: docs/statistics.md
SAME_DESIGN = (65, 315)  # pairs of runs of one design with p <= .05 over 56 tasks, of all: `make study`, ten seeds
NOISE = 1e-24  # squares below it are float noise of scores within 1
OTHERS = 2  # degrees of freedom that the seeds of all designs are worth beside a design's own
Part = tuple[Any, Any]  # of each design: a part of the squared error and its degrees of freedom


@dataclass(frozen=True)
class Spreads:
    """What the runs of D designs say of their spread, of scores [..., D, T tasks, S seeds].

    `means` [..., D, T]: over the seeds of each; `counts` [..., D]: its seeds; `of_seeds`: variance of its run means
    over `counts`; `of_rest`: mean square of the rest over T x counts; `pooled` [..., 1]: variance of run means, mean
    over all designs by their degrees of freedom, nan with fewer than three; `one_run`: `copies`.
    """

    means: Floats
    counts: Ints
    of_seeds: Floats
    of_rest: Floats
    pooled: Floats
    one_run: Bools

    @property
    def df(self) -> tuple[Ints, Ints]:
        """Degrees of freedom of `of_seeds` and of `of_rest`, each [..., D]."""
        return self.counts - 1, (self.counts - 1) * (self.means.shape[-1] - 1)

    def shrunk(self) -> tuple[Floats, Floats]:
        """Return `of_seeds` drawn towards `pooled`, as if that were known from OTHERS degrees of freedom, and its df.

        A variance of few degrees of freedom is often small by chance, and then passes a test; drawn towards the mean it
        is so less often (moderated t: Smyth 2004). Copies of one run have no spread to be drawn.
        """
        own = self.counts - 1
        drawn = (OTHERS * self.pooled / self.counts + own * self.of_seeds) / (OTHERS + own)
        known = ~np.isnan(self.pooled) & ~self.one_run
        return np.where(known, drawn, self.of_seeds), np.where(known, own + OTHERS, own).astype(np.float64)


@dataclass(frozen=True)
class SeedTest:
    """The test of P pairs, each field [..., P]; nan where a design has fewer than FEWEST_SEEDS runs, or both
    are copies of one run, or there are fewer than FEWEST_TASKS.

    `n_seeds`: runs of the design with fewer; 1 where those of both are `copies`. `mean`: second minus first. `error`:
    its standard error with each design's own variance of seeds, `df`: its degrees of freedom; `error_shrunk`,
    `df_shrunk`: the same with the variances of `Spreads.shrunk`. Tests and intervals take the wider of both.
    """

    n_seeds: Ints
    mean: Floats
    error: Floats
    df: Floats
    error_shrunk: Floats
    df_shrunk: Floats
    copies: Bools


def spreads(cube: Floats) -> Spreads:
    """Return the `Spreads` of scores [..., D, T, S]; nan: no such run (a run with a hole counts as none)."""
    known: Bools = np.asarray(~np.isnan(cube).any(axis=-2))
    counts, tasks = known.sum(axis=-1), cube.shape[-2]
    scores = np.where(known[..., None, :], cube, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = scores.sum(axis=-1) / counts[..., None]
        whole = means.mean(axis=-1)[..., None]
        away = np.where(known, scores.mean(axis=-2) - whole, 0.0)
        left = scores - means[..., None] - (away + whole)[..., None, :] + whole[..., None]
        left = np.where(known[..., None, :], left, 0.0)
        squares = np.stack([tasks * (away**2).sum(axis=-1), (left**2).sum(axis=(-2, -1)) / (tasks - 1)]) / (counts - 1)
    squares = np.where(squares < NOISE, 0.0, squares)
    one_run = copies(cube)
    several = (counts > 1) & ~one_run
    free = np.where(several, counts - 1, 0).sum(axis=-1, keepdims=True)
    total = np.where(several, (away**2).sum(axis=-1), 0.0).sum(axis=-1, keepdims=True)
    pooled = np.where(several.sum(axis=-1, keepdims=True) > 2, total / np.maximum(free, 1), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_seeds, of_rest = np.where(counts > 1, squares, np.nan) / (tasks * counts)
    return Spreads(means, counts, of_seeds, of_rest, pooled, one_run)


def copies(cube: Floats) -> Bools:
    """Return which designs [..., D] of `cube` [..., D, T, S] have the same scores with every seed: one run.

    An encoder that nothing trained is one: its scores under three seeds are copies.
    """
    known = ~np.isnan(cube)
    highest, lowest = (np.where(known, cube, end) for end in (-np.inf, np.inf))
    return np.asarray((highest.max(axis=-1, initial=-np.inf) == lowest.min(axis=-1, initial=np.inf)).all(axis=-1))


def pair_test(of: Spreads, first: Ints, second: Ints) -> SeedTest:
    """Return what the runs say of designs `second` minus `first` [P]."""
    fewer = np.minimum(of.counts[..., first], of.counts[..., second])
    alike = of.one_run[..., first] & of.one_run[..., second] & (fewer > 1)
    differences = of.means[..., second, :] - of.means[..., first, :]
    tasks = differences.shape[-1]
    unknown = (fewer < FEWEST_SEEDS) | alike | (tasks < FEWEST_TASKS)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_tasks = differences.var(axis=-1, ddof=1) / tasks if tasks > 1 else np.full(fewer.shape, np.nan)
    of_tasks = np.where(of_tasks * tasks < NOISE, 0.0, of_tasks)
    errors = []
    for of_seeds, df in ((of.of_seeds, of.df[0]), of.shrunk()):
        seeds, rest = _sides(of_seeds, first, second), _sides(of.of_rest, first, second)
        df_rest = _sides(of.df[1], first, second)
        squared, freedom = squared_error(([of_tasks], [tasks - 1]), (seeds, _sides(df, first, second)), (rest, df_rest))
        errors += [np.where(unknown, np.nan, np.sqrt(squared)), np.where(unknown, np.nan, freedom)]
    mean = np.where(unknown, np.nan, differences.mean(axis=-1))
    own, free, shrunk, free_shrunk = errors
    return SeedTest(np.where(alike, 1, fewer), mean, own, free, shrunk, free_shrunk, alike)


def _sides(part: Any, first: Ints, second: Ints) -> tuple[Any, Any]:
    return part[..., first], part[..., second]


def squared_error(tasks: Part, seeds: Part, rest: Part) -> tuple[Floats, Floats]:
    """Return the squared standard error of a mean difference and its degrees of freedom, each [...].

    Each part with its degrees of freedom: tasks, the variance over tasks / T; seeds and rest, one of each design.
    Tasks + seeds - rest is without bias where all three are random, since both others hold the rest; it is never taken
    to be less than the largest of the three.
    Degrees of freedom of the sum by Satterthwaite (1946), Biometrics Bulletin 2, equation 17.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        kinds = np.stack([sum(of) for of, _ in (tasks, seeds, rest)])
        doubts = np.stack([sum(of**2 / df for of, df in zip(*part, strict=True)) for part in (tasks, seeds, rest)])
        unbiased, largest = kinds[0] + kinds[1] - kinds[2], kinds.max(axis=0)
        of_largest = np.take_along_axis(doubts, kinds.argmax(axis=0)[None], axis=0)[0]
        squared = np.maximum(unbiased, largest)
        freedom = squared**2 / np.where(unbiased >= largest, doubts.sum(axis=0), of_largest)
    return squared, np.maximum(freedom, 1.0)


def compare_runs(one: Floats, other: Floats) -> SeedTest:
    """Return the test of runs `other` - `one` [P, T tasks, runs], each of the P a study of its own."""
    cube = np.full((len(one), 2, one.shape[1], max(one.shape[2], other.shape[2])), np.nan)
    cube[:, 0, :, : one.shape[2]], cube[:, 1, :, : other.shape[2]] = one, other
    return pair_test(spreads(cube), *np.arange(2))


def two_sided(of: SeedTest) -> Floats:
    """Return p [P] of a mean difference of zero; nan where seeds are too few, 1 where all scores are equal."""
    return np.minimum(1.0, 2 * _below(-np.abs(of.mean), of))


def outside(of: SeedTest, margin: float) -> Floats:
    """Return p [P] of a mean difference of at least `margin` either way: the larger of two one-sided tests."""
    return np.maximum(_below(-margin - of.mean, of), _below(of.mean - margin, of))


def _below(distance: Floats, of: SeedTest) -> Floats:
    """The larger probability that Student's t is below distance / error; 1 or 0 where there is no error."""
    chances = []
    for error, df in ((of.error, of.df), (of.error_shrunk, of.df_shrunk)):
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.asarray(stdtr(df, distance / error))
        chances.append(np.where(error == 0, np.where(distance >= -np.sqrt(NOISE), 1.0, 0.0), chance))
    return np.maximum(*chances)


def reach(of: SeedTest, level: float) -> Floats:
    """Return half the width [P] of the interval over tasks and seeds, which leaves out 0 where `two_sided` passes."""
    return np.maximum(student_reach(of.error, of.df, level), student_reach(of.error_shrunk, of.df_shrunk, level))
