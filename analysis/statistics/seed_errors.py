"""The squared error of a mean difference over tasks and seeds: its parts, their sum, and the seeds' part moderated."""

import numpy as np

from analysis.statistics.arrays import Bools, Floats

NOISE = 1e-24  # squares below it are float noise of scores within 1
OTHERS = 2  # degrees of freedom that the seeds of all designs are worth beside a pair's own


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


def error_parts(tables: list[Floats]) -> tuple[Floats, Floats]:
    """Return the parts [task, then seed and rest of each table; P] of a mean difference's squared error, df [parts, 1].

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
    return np.stack(parts), np.array(df, dtype=np.float64)[:, None]


def combined_error(parts: Floats, df: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the squared standard error, its degrees of freedom and the seeds' share, each [P], from `error_parts`.

    parts: [parts, P]; df: [parts, 1 or P]. Tasks + seeds - rest is without bias where all three are random (both others
    hold the rest); it is never taken to be less than the largest of the three. Degrees of freedom of the sum by
    Satterthwaite (1946).
    """
    kinds = np.stack([parts[0], parts[1::2].sum(axis=0), parts[2::2].sum(axis=0)])  # tasks, seeds, rest
    doubt = parts**2 / df
    doubts = np.stack([doubt[0], doubt[1::2].sum(axis=0), doubt[2::2].sum(axis=0)])
    unbiased, largest = kinds[0] + kinds[1] - kinds[2], kinds.max(axis=0)
    squared, plain = np.maximum(unbiased, largest), unbiased >= largest
    of_largest = np.take_along_axis(doubts, kinds.argmax(axis=0)[None], axis=0)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = squared**2 / np.where(plain, doubts.sum(axis=0), of_largest)
        share = np.where(squared > 0, np.minimum(1.0, kinds[1] / squared), 0.0)
    return squared, np.maximum(freedom, 1.0), share


def moderated(parts: Floats, df: Floats, of_all: Floats) -> tuple[Floats, Floats]:
    """Return `error_parts` with those of seeds drawn towards `of_all` [tables, P], what the designs' mean would make.

    Variances of few degrees of freedom are often small by chance, and a small one passes a test. Drawn towards the mean
    of all, as if that were known from OTHERS degrees of freedom (moderated t: Smyth 2004), they are so less often. nan:
    there are no others.
    """
    drawn, free = parts.copy(), np.repeat(df, parts.shape[1], axis=1)
    for k, mean in zip(range(1, len(parts), 2), of_all, strict=True):
        both, known = (OTHERS * mean + df[k] * parts[k]) / (OTHERS + df[k]), ~np.isnan(mean)
        drawn[k], free[k] = np.where(known, both, parts[k]), np.where(known, df[k] + OTHERS, df[k])
    return drawn, free


def paired_spread(cube: Floats, one_run: Bools, constant: Bools) -> Floats:
    """Return the variance [P] over the seeds of `cube` of the difference of two run means, its mean over all pairs.

    constant: pairs [P] of which one design has the same run with every seed; theirs is the mean over single designs.
    nan where no pair but the one tested has these seeds.
    """
    means = cube.mean(axis=1)[~one_run]
    means = means[~np.isnan(means).any(axis=1)]
    if len(means) < 2:
        return np.full(len(constant), np.nan)
    return np.where(constant, means.var(axis=1, ddof=1).mean(), 2 * _spread_of_contrasts(means))


def contrast_spread(cube: Floats) -> float:
    """Return the variance over seeds of an orthonormal contrast of run means, its mean over all contrasts.

    cube: [designs, tasks, seeds], two seeds or more, each design with each. A design that has the same run with every
    seed is not among them. nan with just two others, whose only contrast is the one tested.
    """
    return _spread_of_contrasts(cube.mean(axis=1)[~copies(cube)])


def _spread_of_contrasts(means: Floats) -> float:
    """Return the mean square of design x seed of run means [designs, seeds]; nan with fewer than three designs."""
    apart = means - means.mean(axis=0)
    return float(apart.var(axis=1, ddof=1).sum() / (len(means) - 1)) if len(means) > 2 else np.nan


def single_spread(cube: Floats, one_run: Bools, pairs: int) -> Floats:
    """Return the variance [pairs] of a design's run means over its own seeds, of all designs; nan with just two."""
    means = [of[~np.isnan(of)] for of in cube.mean(axis=1)[~one_run]]
    several = [of for of in means if len(of) > 1]
    squares, free = (sum(map(size, several)) for size in (lambda of: len(of) * of.var(), lambda of: len(of) - 1))
    return np.full(pairs, squares / free if len(several) > 2 else np.nan)


def copies(cube: Floats) -> Bools:
    """Return which designs [D] of `cube` [D, tasks, seeds] have the same scores with every seed: one run, not several.

    An encoder that nothing trained is one: its scores under three seeds are copies.
    """
    known = ~np.isnan(cube)
    highest, lowest = (np.where(known, cube, end) for end in (-np.inf, np.inf))
    return np.asarray((highest.max(axis=2, initial=-np.inf) == lowest.min(axis=2, initial=np.inf)).all(axis=1))
