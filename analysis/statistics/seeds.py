"""The mean difference of a pair over tasks and seeds: its test, its intervals, and the seeds' share in its error."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.names import by_number, listed
from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.intervals import student_interval, student_reach
from analysis.statistics.variance import NOISE, REST, mean_squares

FEWEST_SEEDS = 3  # for a claim about designs: with two the interval covers 90 % (docs/decisions/seeds.md)
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


def copies(cube: Floats) -> Bools:
    """Return which designs [D] of `cube` [D, tasks, seeds] have the same scores with every seed: one run, not several.

    An encoder that nothing trained is one: its scores under three seeds are copies.
    """
    known = ~np.isnan(cube)
    highest, lowest = (np.where(known, cube, end) for end in (-np.inf, np.inf))
    return np.asarray((highest.max(axis=2, initial=-np.inf) == lowest.min(axis=2, initial=np.inf)).all(axis=1))


@dataclass(frozen=True)
class SeedMeans:
    """Of P pairs how many seeds their claim rests on, and what they say; the floats are nan below FEWEST_SEEDS.

    `n_seeds`: seeds that both designs have, or, where `seeds_paired` is false, runs of the design with fewer; at most 1
    where the seeds of both are copies (`copies`).
    `mean_seeds`: mean difference over tasks and these runs; `error_seeds`: its standard error where tasks and seeds
    are random; `df_seeds`: its degrees of freedom.
    """

    n_seeds: Ints
    seeds_paired: Bools
    mean_seeds: Floats
    error_seeds: Floats
    df_seeds: Floats
    copies: Bools


def over_tasks_and_seeds(cube: Floats, first: Ints, second: Ints) -> SeedMeans:
    """Return what the runs say of designs `second` minus `first` [P]. cube: [designs, tasks, seeds], nan: no such run.

    Two-way random model of tasks and seeds; each pair has its own variances, so that designs may differ in how far
    they vary with the seed. Paired by seed where both designs share FEWEST_SEEDS or more, since those saw the same
    batches; else, where each has as many, all its runs against all of the other. See `_parts` and `combined_error`.
    """
    kinds, kind = np.unique(~np.isnan(cube).any(axis=1), axis=0, return_inverse=True)  # which seeds a design has
    of_pairs = kind.reshape(-1)[first] * len(kinds) + kind.reshape(-1)[second]
    count, paired = np.zeros(len(first), dtype=np.int64), np.ones(len(first), dtype=np.bool_)
    result = np.full((3, len(first)), np.nan)
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
            squared, freedom, _ = combined_error(*_parts(tables))
            result[:, some] = sum(table.mean(axis=(1, 2)) for table in tables), np.sqrt(squared), freedom
    one_run = copies(cube)
    alike = one_run[first] & one_run[second] & (count > 1)
    count[alike], result[:, alike] = 1, np.nan
    return SeedMeans(count, paired, result[0], result[1], result[2], alike)


def compare_runs(one: Floats, other: Floats, paired: bool) -> SeedMeans:
    """Return `over_tasks_and_seeds` of runs `other` - `one` [P, T tasks, runs]: run k with run k, or all with all."""
    shift = 0 if paired else one.shape[2]  # where seeds are to be paired they have one place
    cube = np.full((2, *one.shape[:2], shift + other.shape[2]), np.nan)
    cube[0, ..., : one.shape[2]], cube[1, ..., shift:] = one, other
    of_one = np.arange(len(one))
    return over_tasks_and_seeds(cube.reshape(-1, *cube.shape[2:]), of_one, of_one + len(one))


def _parts(tables: list[Floats]) -> tuple[Floats, Floats]:
    """Return the parts of the squared error of a mean difference [task, then seed and rest of each table; P], and df.

    tables: [P, T tasks, S seeds] each, whose means over seeds add up to the differences of a pair by task: the
    differences paired by seed, or the scores of one design and those of the other, negative. The tasks' part is the
    variance of that sum over T; the others are MS_seed / (T S) and MS_rest / (T S) of each table.
    """
    tasks = tables[0].shape[1]
    of_task = np.var(sum(table.mean(axis=2) for table in tables), axis=1, ddof=1) / tasks
    parts, df = [np.where(of_task * tasks < NOISE, 0.0, of_task)], [tasks - 1]
    for table in tables:
        seeds = table.shape[2]
        parts += list(table_mean_squares(table)[1:] / (tasks * seeds))
        df += [seeds - 1, (tasks - 1) * (seeds - 1)]
    return np.stack(parts), np.array(df, dtype=np.float64)


def two_sided(of: SeedMeans) -> Floats:
    """Return p [P] of a mean difference of zero; nan where seeds are too few, 1 where all scores are equal."""
    return np.minimum(1.0, 2 * _below(-np.abs(of.mean_seeds), of))


def outside(of: SeedMeans, margin: float) -> Floats:
    """Return p [P] of a mean difference of at least `margin` either way: the larger of two one-sided tests."""
    return np.maximum(_below(-margin - of.mean_seeds, of), _below(of.mean_seeds - margin, of))


def _below(distance: Floats, of: SeedMeans) -> Floats:
    """The probability that Student's t is below distance / error; 1 or 0 where there is no error."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.asarray(stdtr(of.df_seeds, distance / of.error_seeds))
    return np.where(of.error_seeds == 0, np.where(distance >= -np.sqrt(NOISE), 1.0, 0.0), spread)


def table_mean_squares(differences: Floats) -> Floats:
    """Return the mean squares [task | seed | rest, P] of the two-way tables `differences` [P, T tasks, S seeds]."""
    _, tasks, seeds = differences.shape
    mean = differences.mean(axis=(1, 2))[:, None]
    by_task, by_seed = differences.mean(axis=2), differences.mean(axis=1)
    left = differences - by_task[:, :, None] - by_seed[:, None, :] + mean[:, :, None]
    of_task = seeds * ((by_task - mean) ** 2).sum(axis=1) / (tasks - 1)
    of_seed = tasks * ((by_seed - mean) ** 2).sum(axis=1) / (seeds - 1)
    rest = (left**2).sum(axis=(1, 2)) / ((tasks - 1) * (seeds - 1))
    squares = np.stack([of_task, of_seed, rest])
    return np.where(squares < NOISE, 0.0, squares)


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
    pair's own seeds), `by_pooled`, `seed_share` (with the seeds of all designs): see `model_intervals`.
    `seeds_agreeing`: seeds whose mean difference over tasks has the sign of the whole.
    """
    differences = scores[second] - scores[first]
    whole = differences.mean(axis=(1, 2))
    over_tasks = np.stack(student_interval(differences.mean(axis=2), level), axis=1)
    by_model, _, by_pooled, share = model_intervals(scores, first, second, level)
    agreeing = (np.sign(differences.mean(axis=1)) == np.sign(whole)[:, None]).sum(axis=1)
    return SeedPairs(whole, over_tasks, by_model, by_pooled, share, agreeing)


def model_intervals(scores: Floats, first: Ints, second: Ints, level: float = 0.95) -> tuple[Floats, ...]:
    """Return the intervals by the model [P, 2], the seeds' share [P], and the same with the seeds of all designs.

    Model of a pair: difference = mean + task + seed + rest, all random, so the variance of the mean of T tasks and S
    seeds is estimated without bias by (MS_task + MS_seed - MS_rest) / (T S). With few seeds the MS_seed of one pair is
    worth little (S - 1 degrees of freedom); pooled, it is twice the mean square of design x seed over all designs, with
    (designs - 1)(S - 1), which takes all designs to be as sensitive to the seed. The share is the part of the squared
    standard error that more seeds would remove, (MS_seed / (T S)) / the whole: the seeds' own effect and the rest.
    """
    designs, tasks, seeds = scores.shape
    differences = scores[second] - scores[first]
    of_pair, squares = table_mean_squares(differences), mean_squares(scores)
    pooled = np.stack([of_pair[0], *(np.full(len(first), 2 * squares[name][1]) for name in ("design x seed", REST))])
    mean = differences.mean(axis=(1, 2))
    intervals: list[Floats] = []
    for ms, free in ((of_pair, 1), (pooled, designs - 1)):
        df = np.array([tasks - 1, free * (seeds - 1), free * (tasks - 1) * (seeds - 1)], dtype=np.float64)
        squared, freedom, share = combined_error(ms / (tasks * seeds), df)
        reach = student_reach(np.sqrt(squared), freedom, level)
        intervals += [np.stack([mean - reach, mean + reach], axis=1), share]
    return tuple(intervals)


def combined_error(parts: Floats, df: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the squared standard error, its degrees of freedom and the seeds' share, each [P], from `_parts`.

    Tasks + seeds - rest is without bias where all three are random (both others hold the rest); it is never taken to
    be less than the largest of the three. Degrees of freedom of the sum by Satterthwaite (1946).
    """
    kinds = np.stack([parts[0], parts[1::2].sum(axis=0), parts[2::2].sum(axis=0)])  # tasks, seeds, rest
    doubt = parts**2 / df[:, None]
    doubts = np.stack([doubt[0], doubt[1::2].sum(axis=0), doubt[2::2].sum(axis=0)])
    unbiased, largest = kinds[0] + kinds[1] - kinds[2], kinds.max(axis=0)
    squared, plain = np.maximum(unbiased, largest), unbiased >= largest
    of_largest = np.take_along_axis(doubts, kinds.argmax(axis=0)[None], axis=0)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = squared**2 / np.where(plain, doubts.sum(axis=0), of_largest)
        share = np.where(squared > 0, np.minimum(1.0, kinds[1] / squared), 0.0)
    return squared, np.maximum(freedom, 1.0), share
