"""The mean difference of a pair over tasks and seeds: its test and its interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.intervals import student_reach
from analysis.statistics.seed_errors import (
    NOISE,
    combined_error,
    copies,
    error_parts,
    moderated,
    paired_spread,
    single_spread,
)

FEWEST_SEEDS = 3  # for a claim about designs: with two, a pair's own 95 % interval covers 90 %
SAME_DESIGN = (114, 315)  # pairs of runs of one design with p <= .05 over 56 tasks, of all: `make study`, ten seeds
AT_ONCE = 2_000_000  # differences held in memory


@dataclass(frozen=True)
class SeedMeans:
    """Of P pairs how many seeds their claim rests on, and what they say; the floats are nan below FEWEST_SEEDS.

    `n_seeds`: seeds that both designs have, or, where `seeds_paired` is false, runs of the design with fewer; at most 1
    where the seeds of both are copies (`copies`).
    `mean_seeds`: mean difference over tasks and these runs; `error_seeds`: its standard error where tasks and seeds
    are random; `df_seeds`: its degrees of freedom; `error_moderated` and `df_moderated`: the same where the mean square
    of the pair's seeds is drawn towards that of all designs. Tests and intervals take the wider of both.
    """

    n_seeds: Ints
    seeds_paired: Bools
    mean_seeds: Floats
    error_seeds: Floats
    df_seeds: Floats
    error_moderated: Floats
    df_moderated: Floats
    copies: Bools


def over_tasks_and_seeds(cube: Floats, first: Ints, second: Ints, alone: bool = False) -> SeedMeans:
    """Return what the runs say of designs `second` minus `first` [P]. cube: [designs, tasks, seeds], nan: no such run.

    Two-way random model of tasks and seeds; each pair has its own variances, so that designs may differ in how far
    they vary with the seed, beside those that `moderated` makes of them. Paired by seed where both designs share
    FEWEST_SEEDS or more, since those saw the same batches; else, where each has as many, all its runs against all of
    the other. See `error_parts` and `combined_error`. alone: the other designs of the cube are of other studies.
    """
    one_run = copies(cube)
    kinds, kind = np.unique(~np.isnan(cube).any(axis=1), axis=0, return_inverse=True)  # which seeds a design has
    of_pairs = kind.reshape(-1)[first] * len(kinds) + kind.reshape(-1)[second]
    count, paired = np.zeros(len(first), dtype=np.int64), np.ones(len(first), dtype=np.bool_)
    result = np.full((5, len(first)), np.nan)
    for code in np.unique(of_pairs).tolist():
        one, other = kinds[code // len(kinds)], kinds[code % len(kinds)]
        places, shared = np.flatnonzero(of_pairs == code), one & other
        fewer = int(min(one.sum(), other.sum()))
        apart = shared.sum() < FEWEST_SEEDS <= fewer
        count[places], paired[places] = fewer if apart else shared.sum(), not apart
        if count[places[0]] < FEWEST_SEEDS or cube.shape[1] < 2:
            continue
        for some in np.array_split(places, -(-len(places) * cube[0].size // AT_ONCE)):
            runs = cube[second[some]], -cube[first[some]]
            tables = [runs[0][..., other], runs[1][..., one]] if apart else [(runs[0] + runs[1])[..., shared]]
            (parts, df), mean = error_parts(tables), sum(table.mean(axis=(1, 2)) for table in tables)
            squared, freedom, _ = combined_error(parts, df)
            constant = one_run[first[some]] | one_run[second[some]]
            of_all = (
                single_spread(cube, one_run, len(some))
                if apart
                else paired_spread(cube[:, :, shared], one_run, constant)
            )
            of_all = np.stack([of_all / table.shape[2] for table in tables])
            drawn, free, _ = combined_error(*moderated(parts, df, np.where(alone, np.nan, of_all)))
            result[:, some] = mean, np.sqrt(squared), freedom, np.sqrt(drawn), free
    alike = one_run[first] & one_run[second] & (count > 1)
    count[alike], result[:, alike] = 1, np.nan
    mean, *errors = result
    return SeedMeans(count, paired, mean, errors[0], errors[1], errors[2], errors[3], alike)


def compare_runs(one: Floats, other: Floats, paired: bool) -> SeedMeans:
    """Return `over_tasks_and_seeds` of runs `other` - `one` [P, T tasks, runs]: run k with run k, or all with all.

    Each of the P is a study of its own.
    """
    shift = 0 if paired else one.shape[2]  # where seeds are to be paired they have one place
    cube = np.full((2, *one.shape[:2], shift + other.shape[2]), np.nan)
    cube[0, ..., : one.shape[2]], cube[1, ..., shift:] = one, other
    of_one = np.arange(len(one))
    return over_tasks_and_seeds(cube.reshape(-1, *cube.shape[2:]), of_one, of_one + len(one), alone=True)


def two_sided(of: SeedMeans) -> Floats:
    """Return p [P] of a mean difference of zero; nan where seeds are too few, 1 where all scores are equal."""
    return np.minimum(1.0, 2 * _below(-np.abs(of.mean_seeds), of))


def outside(of: SeedMeans, margin: float) -> Floats:
    """Return p [P] of a mean difference of at least `margin` either way: the larger of two one-sided tests."""
    return np.maximum(_below(-margin - of.mean_seeds, of), _below(of.mean_seeds - margin, of))


def _below(distance: Floats, of: SeedMeans) -> Floats:
    """The larger probability that Student's t is below distance / error; 1 or 0 where there is no error."""
    from scipy.special import stdtr

    chances = []
    for error, df in ((of.error_seeds, of.df_seeds), (of.error_moderated, of.df_moderated)):
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.asarray(stdtr(df, distance / error))
        chances.append(np.where(error == 0, np.where(distance >= -np.sqrt(NOISE), 1.0, 0.0), chance))
    return np.maximum(*chances)


def reach_of_seeds(of: Any, level: float) -> Floats:
    """Return half the width [P] of the interval over tasks and seeds that leaves out 0 where `two_sided` passes.

    of: `SeedMeans`, or a table with its columns.
    """
    both = ((of.error_seeds, of.df_seeds), (of.error_moderated, of.df_moderated))
    return np.maximum(*(student_reach(np.asarray(error), np.asarray(df), level) for error, df in both))
