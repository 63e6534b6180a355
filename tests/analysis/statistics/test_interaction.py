"""Design x type: the statistic against statsmodels, p against brute force, the test over seeds against loops,
and the level of both."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import f

from analysis.statistics.contrasts import helmert
from analysis.statistics.interaction import over_seeds, permuted, welch

ROUNDS = 200


def sums(vectors, sizes):
    parts = np.split(vectors, np.cumsum(sizes)[:-1])
    return np.array([p.sum(axis=0) for p in parts]), np.array([(p**2).sum() for p in parts]), np.array(sizes)


def test_with_two_designs_it_is_welchs_statistic():
    from statsmodels.stats.oneway import anova_oneway

    sizes, rng = (5, 9, 3, 12), np.random.default_rng(0)
    values = rng.normal(size=29) * np.repeat([1, 3, 0.5, 2], sizes)
    theirs = anova_oneway(np.split(values, np.cumsum(sizes)[:-1]), use_var="unequal", welch_correction=True)
    statistic, df_error = welch(*sums(values[:, None], sizes))[:2]
    assert statistic == pytest.approx(theirs.statistic)
    assert df_error == pytest.approx(theirs.df_denom)


def by_hand(vectors, sizes):
    """The statistic of one arrangement, spelt out; without a difference within a type it is not defined."""
    parts, k = np.split(vectors, np.cumsum(sizes)[:-1]), vectors.shape[1]
    spreads = [sum((task - part.mean(axis=0)) @ (task - part.mean(axis=0)) for task in part) for part in parts]
    pooled = sum(spreads) / (len(vectors) - len(sizes))
    spreads = [max(s / (n - 1), pooled / 1000) / k for s, n in zip(spreads, sizes, strict=True)]
    weights = np.array([n / s for n, s in zip(sizes, spreads, strict=True)])
    centre = sum(w * part.mean(axis=0) for w, part in zip(weights, parts, strict=True)) / weights.sum()
    apart = sum(w * ((part.mean(axis=0) - centre) ** 2).sum() for w, part in zip(weights, parts, strict=True))
    groups = len(sizes)
    lack = sum((1 - w / weights.sum()) ** 2 / (k * (n - 1)) for w, n in zip(weights, sizes, strict=True))
    return apart / (k * (groups - 1)) / (1 + 2 * (groups - 2) / (groups**2 - 1) * lack)


@pytest.mark.parametrize("sizes", [(3, 4), (2, 2, 3)])
def test_p_is_the_share_of_all_orders_of_what_is_left(sizes):
    rng = np.random.default_rng(3)
    of = np.repeat(np.arange(len(sizes)), sizes)
    vectors = rng.normal(size=(7, 2)) * np.array([1.0, 2.5, 0.7])[of][:, None] + 1.5 * of[:, None]
    counts = np.array(sizes)[of][:, None]
    means = np.array([vectors[of == g].mean(axis=0) for g in of])
    spread = np.array([np.sqrt(((vectors - means)[of == g] ** 2).sum() / (2 * (sum(of == g) - 1))) for g in of])[
        :, None
    ]
    left = (vectors - means) / spread / np.sqrt(1 - 1 / counts)
    observed = by_hand(vectors, sizes)
    every = [by_hand(left[list(order)] * spread, sizes) for order in permutations(range(7))]
    as_large = round(np.mean(np.array(every) >= observed) * (total := 35 if len(sizes) == 2 else 210))
    ours = permuted(vectors, sizes)
    assert ours.statistic == pytest.approx(observed)
    assert ours.draws == total
    assert ours.p == pytest.approx((as_large + 1) / (total + 1))
    drawn = permuted(vectors, sizes, draws=30)
    assert drawn.draws > total
    assert drawn.p == pytest.approx(ours.p, abs=0.05)


@pytest.mark.parametrize("draw", range(3))
def test_over_seeds_it_is_its_formula_by_loops(draw):
    """Three types, three designs with their own seeds; seeds: of the types' means around their weighted mean."""
    rng, sizes, counts = np.random.default_rng(draw), (4, 7, 3), (3, 5, 4)
    contrasts, of = helmert(3), np.repeat(range(3), sizes)
    cube = rng.normal(size=(3, 14, 5)) * 0.3 + rng.normal(size=(3, 14, 1)) + rng.normal(size=(3, 3, 5))[:, of]
    for design, count in enumerate(counts):
        cube[design, :, count:] = np.nan
    vectors = np.nanmean(cube, axis=2).T @ contrasts
    statistic, df_tasks, weights, shares = welch(*sums(vectors, sizes))
    squares, rests = [], []
    for runs, count in zip(cube, counts, strict=True):
        by_type = np.array([runs[of == g, :count].mean(axis=0) for g in range(3)])
        apart = by_type - by_type.mean(axis=1, keepdims=True)
        centred = apart - shares @ apart
        squares.append(sum(weights[g] * centred[g].var(ddof=1) / count for g in range(3)))
        rest = 0.0
        for g, size in enumerate(sizes):
            left = runs[of == g, :count] - runs[of == g, :count].mean(axis=1, keepdims=True) - apart[g]
            rest += weights[g] * (1 - shares[g]) * (left**2).sum() / (size - 1) / (count - 1) / size / count
        rests.append(rest)
    length, free = (contrasts**2).sum(axis=1) / 4, np.array(counts) - 1
    seeds, rests = length * squares, length * rests
    parts, doubts = (
        [1, seeds.sum(), rests.sum()],
        [1 / df_tasks, (seeds**2 / 2 / free).sum(), (rests**2 / 11 / free).sum()],
    )
    error, doubt = parts[0] + parts[1] - parts[2], sum(doubts)
    assert error > max(parts)
    covariance = contrasts.T @ np.diag(squares) @ contrasts
    for g, size in enumerate(sizes):
        within = vectors[of == g] - vectors[of == g].mean(axis=0)
        covariance += weights[g] * (1 - shares[g]) / size / (size - 1) * within.T @ within
    epsilon = np.trace(covariance) ** 2 / 2 / (covariance**2).sum()
    ours = over_seeds(cube, contrasts, sizes)
    expected = statistic / error, 4 * epsilon, epsilon * error**2 / doubt
    assert (ours.F_seeds, ours.df_seeds, ours.df_error_seeds) == pytest.approx(expected)
    assert ours.p_seeds == pytest.approx(f.sf(*expected))


def test_what_all_types_share_with_a_seed_and_which_contrasts_are_taken_changes_nothing():
    rng, sizes = np.random.default_rng(2), (4, 7, 3)
    scores = rng.normal(size=(4, 14, 3))
    basis, other = helmert(4), np.linalg.qr(np.column_stack([np.ones(4), rng.normal(size=(4, 3))]))[0][:, 1:]

    def both(columns, extra=0.0):
        found = over_seeds(scores + extra, columns, sizes)
        return [permuted((scores + extra).mean(axis=2).T @ columns, sizes).statistic, *vars(found).values()]

    shared = rng.normal(size=(4, 1, 3))
    np.testing.assert_allclose(both(basis), both(other))
    np.testing.assert_allclose(both(basis), both(basis, shared))
    assert np.isnan(over_seeds(np.zeros((3, 8, 1)), helmert(3), (4, 4)).p_seeds)


def worlds(rng, seed_sd, effect=0.0, sizes=(8, 8, 8, 16), spread=(4, 1, 1, 1)):
    """[designs, tasks, seeds]: types of unequal spread and size with heavy tails; one design varies with the seed."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    tasks = 0.02 * rng.standard_t(3, (40, 5)) / np.sqrt(3) * np.array(spread)[of][:, None]
    seeds = seed_sd * rng.normal(size=(4, 5, 3)) * np.array([4, 1, 1, 1, 1])[:, None]
    cube = tasks[:, :, None] + seeds[of] + 0.005 * rng.normal(size=(40, 5, 3))
    cube[of == 3, 4] += effect
    return cube.swapaxes(0, 1)


def test_levels_with_unequal_spreads_and_seeds():
    """Over tasks near 5 % without seed noise; with it far more, and the test over tasks and seeds not."""
    rng, sizes, basis = np.random.default_rng(4), (8, 8, 8, 16), helmert(5)
    quiet = [permuted(worlds(rng, 0).mean(axis=2).T @ basis, sizes, 199).p <= 0.05 for _ in range(ROUNDS)]
    assert np.mean(quiet) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / ROUNDS)
    over_tasks, over_both = [], []
    for _ in range(ROUNDS):
        cube = worlds(rng, 0.005)
        over_tasks.append(permuted(cube.mean(axis=2).T @ basis, sizes, 199).p <= 0.05)
        over_both.append(over_seeds(cube, basis, sizes).p_seeds <= 0.05)
    assert np.mean(over_tasks) > 0.15
    assert np.mean(over_both) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / ROUNDS)
