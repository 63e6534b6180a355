"""The mean difference of a pair over tasks and seeds: its test, its intervals, and the seeds' share in its error."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.names import by_number, listed
from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.intervals import student_interval, student_reach
from analysis.statistics.seed_errors import (
    combined_error,
    copies,
    error_parts,
    moderated,
    paired_spread,
    single_spread,
)
from analysis.statistics.variance import NOISE, REST, mean_squares

FEWEST_SEEDS = 3  # for a claim about designs: with two a pair's own interval covers 90 % (docs/decisions/seeds.md)
SAME_DESIGN = (114, 315)  # pairs of runs of one design with p <= .05 over 56 tasks, of all (docs/calibration.md)
AT_ONCE = 2_000_000  # differences held in memory


@dataclass(frozen=True)
class SeedTable:
    """`scores` [designs, tasks, seeds], complete; `note` says which designs or seeds are not in it, or is empty."""

    designs: list[str]
    tasks: list[str]
    seeds: list[str]
    scores: Floats
    note: str = ""

    def without_copies(self) -> "SeedTable | None":
        """Return the table without designs whose seeds are copies of one run; None where fewer than two are left."""
        one_run = copies(self.scores)
        designs = [design for design, copied in zip(self.designs, one_run, strict=True) if not copied]
        gone = [design for design in self.designs if design not in designs]
        if not gone or len(designs) < 2:
            return None if gone else self
        left_out = f"the designs that differ between seeds: copies of one run ({listed(gone, 4)}) left out"
        return replace(
            self, designs=designs, scores=self.scores[~one_run], note="; ".join(filter(None, [self.note, left_out]))
        )

    def block(self, tasks: list[str]) -> Floats:
        """Return the scores of these tasks, [designs, tasks, seeds]."""
        place = {task: k for k, task in enumerate(self.tasks)}
        return self.scores[:, [place[task] for task in tasks]]


def seed_table(frame: pd.DataFrame, designs: list[str], tasks: list[str]) -> SeedTable | None:
    """Return the table over the seeds that all designs share; None where there are fewer than two.

    frame: long, with design, seed, task, score. Designs with one seed are left out where two designs with more remain.
    """
    known = frame[frame["seed"] != ""].groupby("design")["seed"].unique()
    seeds = {design: by_number(known.get(design, ())) for design in designs}
    several = [design for design in designs if len(seeds[design]) > 1]
    shared = [seed for seed in seeds[several[0]] if all(seed in seeds[d] for d in several)] if several else []
    if len(several) < 2 or len(shared) < 2:
        return None
    wide = frame.pivot_table(index="task", columns=["design", "seed"], values="score")
    scores = np.stack([wide[design].loc[tasks, shared].to_numpy(dtype=np.float64) for design in several])
    return SeedTable(several, tasks, shared, scores, _note(seeds, several, shared))


def _note(seeds: dict[str, list[str]], several: list[str], shared: list[str]) -> str:
    single = [design for design in seeds if design not in several]
    more = [design for design in several if len(seeds[design]) > len(shared)]
    parts = [f"{listed(single, 4)} with fewer than two seeds left out"] if single else []
    parts += [f"further seeds of {listed(more, 4)} not used"] if more else []
    return f"only the seeds {', '.join(shared)}, which the designs share: {'; '.join(parts)}" if parts else ""


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


@dataclass(frozen=True)
class SeedPairs:
    """Results for P pairs; the intervals are [P, 2], the others [P]."""

    difference: Floats
    over_tasks: Floats
    by_model: Floats
    by_pooled: Floats
    seed_share: Floats
    seeds_agreeing: Ints


def seed_pairs(scores: Floats, first: Ints, second: Ints, level: float = 0.95) -> SeedPairs:
    """Compare designs `second` minus `first` [P] of `scores` [designs, tasks, seeds], two tasks and seeds or more.

    `over_tasks`: Student's interval over tasks, seed means as scores, as for the pairs. `by_model` (over tasks and the
    pair's own seeds, moderated where that is wider), `by_pooled`, `seed_share`: see `model_intervals`.
    `seeds_agreeing`: seeds whose mean difference over tasks has the sign of the whole.
    """
    differences = scores[second] - scores[first]
    whole = differences.mean(axis=(1, 2))
    over_tasks = np.stack(student_interval(differences.mean(axis=2), level), axis=1)
    by_model, by_pooled, share = model_intervals(scores, first, second, level)
    agreeing = (np.sign(differences.mean(axis=1)) == np.sign(whole)[:, None]).sum(axis=1)
    return SeedPairs(whole, over_tasks, by_model, by_pooled, share, agreeing)


def model_intervals(scores: Floats, first: Ints, second: Ints, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Return the intervals by the model [P, 2], those with the seeds of all designs [P, 2], and their seeds' share [P].

    Model of a pair: difference = mean + task + seed + rest, all random, so the variance of the mean of T tasks and S
    seeds is estimated without bias by (MS_task + MS_seed - MS_rest) / (T S). The first interval takes the pair's own
    mean squares, and MS_seed `moderated` where that is wider. Pooled, MS_seed is twice the mean square of design x seed
    over all designs but `copies`, with (designs - 1)(S - 1) degrees of freedom, which takes all designs to be as
    sensitive to the seed; beside a design of copies it is the mean of single designs, with the S - 1 of one, since a
    seed moves designs together; of two such designs there is none. The share is the part of the squared standard error
    that more seeds would remove, (MS_seed / (T S)) / the whole: the seeds' own effect and the rest.
    """
    tasks, seeds = scores.shape[1:]
    differences, one_run = scores[second] - scores[first], copies(scores)
    of_all = paired_spread(scores, one_run, one_run[first] | one_run[second])[None] / seeds
    parts, df = error_parts([differences])
    own = [_reach(*of, level) for of in ((parts, df), moderated(parts, df, of_all))]
    varying, constant = scores[~one_run], one_run[first].astype(np.int64) + one_run[second]
    free = np.where(constant == 0, max(1, len(varying) - 1), 1)
    squares = mean_squares(varying) if len(varying) > 1 else {}
    of_pairs = [2 * squares[name][1] / (tasks * seeds) if squares else 0.0 for name in ("design x seed", REST)]
    of_one = error_parts([varying])[0][1:].mean(axis=1) if len(varying) else (0.0, 0.0)
    pooled = [np.choose(constant, [of_pair, single, 0.0]) for of_pair, single in zip(of_pairs, of_one, strict=True)]
    of_pooled = np.stack([parts[0], *pooled]), np.stack([np.ones(len(first)), free, free]) * df
    mean, reach = differences.mean(axis=(1, 2)), (np.maximum(*own), _reach(*of_pooled, level))
    by_model, by_pooled = (np.stack([mean - half, mean + half], axis=1) for half in reach)
    return by_model, by_pooled, combined_error(*of_pooled)[2]


def _reach(parts: Floats, df: Floats, level: float) -> Floats:
    squared, freedom, _ = combined_error(parts, df)
    return student_reach(np.sqrt(squared), freedom, level)
