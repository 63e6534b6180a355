"""Design x type: does the vector of design effects differ between types of task? Over tasks, and over tasks and seeds.

Also any effect of crossed factors over tasks and seeds, whose test has the same parts.

Tasks are units within types; a task's own level is taken out by contrasts of its scores over designs. The statistic is
Welch's (1951), whose weights are the types' own spreads, summed over the contrasts (for distances: Hamidi et al. 2019).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod

import numpy as np
from scipy.special import fdtrc

from analysis.statistics.arrays import Floats, Ints, blocks, length
from analysis.statistics.seeds import NOISE, Spreads, copies, squared_error
from analysis.statistics.sign_flip import CELLS, SEED, counted_p

DRAWS = 9_999
FEWEST_DRAWS = 999
DRAWN = 20_000_000  # tasks put into an order at most, but for the fewest draws
LEAST_SPREAD = 1e-3  # of the pooled one: two tasks that happen to agree are no proof of a type without spread


@dataclass(frozen=True)
class Permuted:
    """`statistic`, its `p`, the number of orders counted."""

    statistic: float
    p: float
    draws: int


@dataclass(frozen=True)
class OverSeeds:
    """F with its degrees of freedom and p over `n_seeds` seeds; all nan below two. Copies of one run are one seed."""

    n_seeds: int
    F_seeds: float = np.nan
    df_seeds: float = np.nan
    df_error_seeds: float = np.nan
    p_seeds: float = np.nan


def welch(sums: Floats, squares: Floats, sizes: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the statistic [...], its degrees of freedom of error [...], and weights and their shares [..., G].

    sums: [..., G, k] of each type's vectors; squares: [..., G] of all their entries; sizes: [G] tasks. With m_g the
    mean vector, s_g^2 the variance within a type per contrast, w_g = n_g / s_g^2 and m the mean weighed by w: sum_g w_g
    |m_g - m|^2 / (k (G - 1)), over Welch's 1 + 2 (G - 2) / (G^2 - 1) sum_g (1 - w_g / w)^2 / (k (n_g - 1)).
    """
    groups, k = sums.shape[-2:]
    mean = sums / sizes[:, None]
    within = np.maximum(squares - sizes * (mean**2).sum(axis=-1), 0.0)
    pooled = within.sum(axis=-1, keepdims=True) / (sizes - 1).sum()
    weights = k * sizes / np.maximum(within / (sizes - 1), LEAST_SPREAD * pooled + NOISE)
    shares = weights / weights.sum(axis=-1, keepdims=True)
    apart = mean - (shares[..., None] * mean).sum(axis=-2, keepdims=True)
    between = (weights * (apart**2).sum(axis=-1)).sum(axis=-1) / (k * (groups - 1))
    lack = ((1 - shares) ** 2 / (k * (sizes - 1))).sum(axis=-1)
    scale = 1 + 2 * (groups - 2) / (groups**2 - 1) * lack
    return between / scale, (groups**2 - 1) / (3 * lack), weights / scale[..., None], shares


def permuted(vectors: Floats, sizes: Sequence[int], draws: int = DRAWS) -> Permuted:
    """Test vectors [n, k], type by type, of types of these sizes (two or more each): is the mean vector the same?

    What is left of a task without its type's mean, over its type's spread, is dealt out to the types in another order
    and takes their spreads: types may differ in spread, and only the shape of what is left is taken to be alike. Raw
    vectors in another order, exact where all types are distributed alike, reject far more than they should where
    spreads differ. All orders are counted where there are at most `draws`, else
    random ones (seed 0); p = (b + 1) / (m + 1) counts the observed one.
    """
    n, k = vectors.shape
    counts, starts = np.array(sizes), np.cumsum([0, *sizes[:-1]])
    of = np.repeat(np.arange(len(sizes)), counts)
    sums, squares = _sums(vectors[None], starts)
    statistic = welch(sums, squares, counts)[0]
    left = vectors - (sums[0] / counts[:, None])[of]
    spread = np.sqrt(np.add.reduceat((left**2).sum(axis=1), starts) / (k * counts))  # over n: that of what is left
    left = left / np.where(spread > 0, spread, 1.0)[of, None]
    spread = spread * np.sqrt(counts / (counts - 1))
    possible = factorial(n) // prod(map(factorial, sizes))
    exact = possible <= draws
    total = possible if exact else max(FEWEST_DRAWS, min(draws, DRAWN // n))
    least = statistic[0] * (1 - 1e-10) - 1e-9  # equal but for rounding must tie
    as_large = 0
    for orders in _all_orders(n, sizes) if exact else _random_orders(n, total, CELLS // (n * (k + 1))):
        again, again_squares = _sums(left[orders], starts)
        null = welch(again * spread[:, None], again_squares * spread**2, counts)[0]
        as_large += int((null >= least).sum())
    p = float(counted_p(as_large, total, exact=False))
    return Permuted(float(statistic[0]), p, total)


def over_seeds(cube: Floats, contrasts: Floats, sizes: Sequence[int]) -> OverSeeds:
    """Test the same where tasks and seeds are random, each design with its own seeds.

    cube: [D, n tasks, S], type by type, nan: no such run; contrasts: [D, k]. F is the statistic over tasks, whose error
    is 1, over 1 + seeds - rest, never less than the largest of them. seeds: the types' means by seed around their mean,
    what all types share with a seed taken out; rest: task x seed, which both hold. Degrees of freedom of the sum by
    Satterthwaite (1946), and all times Box's epsilon (Greenhouse and Geisser 1959), since designs may differ in how far
    they vary with task and seed.
    """
    own = [runs[:, ~np.isnan(runs).any(axis=0)] for runs in cube]  # [n, S] of each design: its whole runs
    n, (designs, k), seeds = cube.shape[1], contrasts.shape, min(runs.shape[1] for runs in own)
    if seeds < 2 or copies(cube).all():
        return OverSeeds(min(seeds, 1))
    counts, starts = np.array(sizes), np.cumsum([0, *sizes[:-1]])
    of, free = np.repeat(np.arange(len(sizes)), counts), k * (len(sizes) - 1)  # type of each task; df of the effect

    # Over tasks alone, with runs averaged: Welch's statistic, whose error is 1.
    tasks = np.stack([runs.mean(axis=1) for runs in own], axis=1) @ contrasts
    statistic, df_tasks, weights, shares = (part[0] for part in welch(*_sums(tasks[None], starts), counts))

    # Variance that each design adds by its seeds (in the means of types, less what all share), and by task x seed.
    of_seeds, of_rest = np.zeros(designs), np.zeros(designs)
    for d, runs in enumerate(own):
        by_seed = np.add.reduceat(runs, starts, axis=0) / counts[:, None]  # [types, S]
        apart = by_seed - by_seed.mean(axis=1, keepdims=True)
        left = runs - runs.mean(axis=1, keepdims=True) - apart[of]
        rests = np.add.reduceat((left**2).sum(axis=1), starts) / ((counts - 1) * (runs.shape[1] - 1))
        apart = apart - shares @ apart
        of_seeds[d] = weights @ apart.var(axis=1, ddof=1) / runs.shape[1]
        of_rest[d] = (weights * (1 - shares) * rests / counts).sum() / runs.shape[1]

    # Covariance of the contrasts, with tasks and with seeds: how unlike a sphere it is sets Box's epsilon.
    within = tasks - (np.add.reduceat(tasks, starts, axis=0) / counts[:, None])[of]
    with_task = (within * (weights * (1 - shares) / (counts * (counts - 1)))[of, None]).T @ within
    with_seed = contrasts.T @ (of_seeds[:, None] * contrasts)

    # Error of the statistic: 1 over tasks, plus seeds, less what both count twice; degrees of freedom by Satterthwaite.
    lengths, runs_free = (contrasts**2).sum(axis=1) / free, np.array([runs.shape[1] - 1 for runs in own])
    rest = lengths * of_rest, (n - len(sizes)) * runs_free
    squared, freedom = squared_error(([1.0], [df_tasks]), (lengths * of_seeds, (len(sizes) - 1) * runs_free), rest)
    return OverSeeds(seeds, *_quasi_f(float(statistic), float(squared), float(freedom), with_task + with_seed, free))


def effect_over_seeds(of: Spreads, contrasts: Floats) -> OverSeeds:
    """Test orthonormal contrasts [D, k] of one effect: is their mean zero where tasks and seeds are random?

    F is the squared length of the mean over what it is expected to be without an effect: tasks + seeds - rest, the
    squared error of a pair's mean difference (`squared_error`) summed over the contrasts. Degrees of freedom as in
    `over_seeds`. With one contrast of two designs it is their `pair_test`; which basis spans the effect changes
    nothing. The test with the larger p counts, each design's own variances and those of `Spreads.shrunk`. All nan below
    two tasks or two seeds.
    """
    vectors, seeds = of.means.T @ contrasts, int(of.counts.min())
    n, k = vectors.shape
    if min(n, seeds) < 2 or of.one_run.all():
        return OverSeeds(min(seeds, 1) if of.one_run.all() else seeds)
    mean, shares = vectors.mean(axis=0), (contrasts**2).sum(axis=1) / k
    with_task, tests = np.cov(vectors.T).reshape(k, k) / n, []
    for of_seeds, df in ((of.of_seeds, of.df[0]), of.shrunk()):
        tasks = [np.trace(with_task) / k], [k * (n - 1)]
        squared, freedom = squared_error(tasks, (shares * of_seeds, df), (shares * of.of_rest, of.df[1]))
        covariance = with_task + contrasts.T @ (of_seeds[:, None] * contrasts)
        tests.append(_quasi_f(float(mean @ mean) / k, float(squared), float(freedom), covariance, k))
    return OverSeeds(seeds, *max(tests, key=lambda test: test[-1]))


def _quasi_f(statistic: float, error: float, freedom: float, covariance: Floats, free: int) -> tuple[float, ...]:
    """Return F of a statistic over its expectation without an effect, its two df and p.

    freedom: of that error; free: of the statistic. Both are multiplied by Box's epsilon of the covariance [k, k].
    """
    squares = float((covariance**2).sum())
    epsilon = np.trace(covariance) ** 2 / (len(covariance) * squares) if squares else 1.0
    value = statistic / error if error else np.inf if statistic > NOISE else 0.0
    dfs = float(epsilon * free), float(epsilon * freedom)
    return value, *dfs, float(fdtrc(*dfs, value)) if error else float(value == 0)


def _sums(vectors: Floats, starts: Ints) -> tuple[Floats, Floats]:
    """Return the sums [b, G, k] of vectors [b, n, k] and of all their squares [b, G] by type."""
    return np.add.reduceat(vectors, starts, axis=1), np.add.reduceat((vectors**2).sum(axis=2), starts, axis=1)


def _all_orders(n: int, sizes: Sequence[int]) -> Iterator[Ints]:
    """Yield every way of dealing n tasks out to types of these sizes, as orders [1, n]."""

    def dealt(rest: tuple[int, ...], sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
        if not sizes:
            yield ()
            return
        for hand in combinations(rest, sizes[0]):
            for others in dealt(tuple(place for place in rest if place not in hand), sizes[1:]):
                yield hand + others

    yield np.array(list(dealt(tuple(range(n)), sizes)))


def _random_orders(n: int, count: int, at_once: int) -> Iterator[Ints]:
    """Yield `count` random orders of n tasks, in chunks [orders, n]; the same ones at every call."""
    generator = np.random.default_rng(SEED)
    for block in blocks(count, at_once):
        yield generator.permuted(np.tile(np.arange(n), (length(block), 1)), axis=1)
