"""Design x type: the statistic against statsmodels, p against brute force, the test over seeds against an analysis of
variance, and the level of both."""

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
    assert (ours.exact, ours.draws, ours.p_error) == (True, total, 0)
    assert ours.p == pytest.approx((as_large + 1) / (total + 1))
    drawn = permuted(vectors, sizes, draws=30)
    assert not drawn.exact
    assert drawn.p == pytest.approx(ours.p, abs=0.05)


def mean_square(cube, *keep):
    """The mean square of an effect of [design, type, task, seed] whose tasks are nested in types."""
    effect = cube.mean(axis=tuple(k for k in range(4) if k not in keep), keepdims=True)
    for axis in keep:
        if axis != 1 or 2 not in keep:  # within types: the mean over tasks takes the type's out
            effect = effect - effect.mean(axis=axis, keepdims=True)
    df = np.prod([cube.shape[k] - (1 if k != 1 or 2 not in keep else 0) for k in keep])
    return (effect**2).sum() * cube.size / effect.size / df


def test_over_seeds_it_is_the_quasi_f_where_all_types_spread_alike():
    """Two designs, four types of equal size and spread: Welch's weights are equal, so mean squares say it all."""
    rng, sizes, n, seeds = np.random.default_rng(1), (6,) * 4, 6, 4
    base = rng.normal(size=6)
    base = base - base.mean()
    tasks = np.concatenate([rng.permutation(base) for _ in sizes]) + np.repeat(rng.normal(0, 0.4, 4), n)
    moved = rng.normal(0, 0.6, (4, 1, seeds)) + rng.normal(0, 0.3, (4, n, seeds))
    moved = moved - moved.mean(axis=2, keepdims=True)
    vectors = (tasks.reshape(4, n, 1) + moved).reshape(24, 1, seeds)
    cube = np.stack([-vectors[:, 0], vectors[:, 0]]).reshape(2, 4, n, seeds) / np.sqrt(2)
    effect, task = mean_square(cube, 0, 1), mean_square(cube, 0, 1, 2)
    seed, rest = mean_square(cube, 0, 1, 3), mean_square(cube, 0, 1, 2, 3)
    welch_scale = 1 + 2 * 2 / 15 * 4 * (3 / 4) ** 2 / 5
    scaled = np.array([task * welch_scale, seed, rest]) / (task * welch_scale)
    error = scaled[0] + scaled[1] - scaled[2]
    df_error = error**2 / (scaled**2 / [15 / (3 * 4 * (3 / 4) ** 2 / 5), 9, 20 * 3]).sum()
    ours = over_seeds(vectors, sizes)
    assert (ours.n_seeds, ours.df_seeds) == (4, pytest.approx(3))
    assert pytest.approx(effect / task / welch_scale / error) == ours.F_seeds
    assert ours.df_error_seeds == pytest.approx(df_error)
    assert ours.p_seeds == pytest.approx(f.sf(ours.F_seeds, 3, df_error))


def test_what_all_types_share_with_a_seed_and_which_contrasts_are_taken_changes_nothing():
    rng, sizes = np.random.default_rng(2), (4, 7, 3)
    scores = rng.normal(size=(14, 4, 3))
    basis, other = helmert(4), np.linalg.qr(np.column_stack([np.ones(4), rng.normal(size=(4, 3))]))[0][:, 1:]

    def both(columns, extra=0.0):
        vectors = np.einsum("nds,dk->nks", scores + extra, columns)
        return [permuted(vectors.mean(axis=2), sizes).statistic, *vars(over_seeds(vectors, sizes)).values()]

    shared = rng.normal(size=(1, 4, 3))
    np.testing.assert_allclose(both(basis), both(other))
    np.testing.assert_allclose(both(basis), both(basis, shared))
    assert np.isnan(over_seeds(np.zeros((8, 2, 1)), (4, 4)).p_seeds)


def worlds(rng, seed_sd, effect=0.0, sizes=(8, 8, 8, 16), spread=(4, 1, 1, 1)):
    """[tasks, contrasts, seeds]: types of unequal spread and size with heavy tails; one design varies with the seed."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    tasks = 0.02 * rng.standard_t(3, (40, 5)) / np.sqrt(3) * np.array(spread)[of][:, None]
    seeds = seed_sd * rng.normal(size=(4, 5, 3)) * np.array([4, 1, 1, 1, 1])[:, None]
    cube = tasks[:, :, None] + seeds[of] + 0.005 * rng.normal(size=(40, 5, 3))
    cube[of == 3, 4] += effect
    return np.einsum("nds,dk->nks", cube, helmert(5))


def test_levels_with_unequal_spreads_and_seeds():
    """Over tasks near 5 % without seed noise; with it far more, and both tests together not."""
    rng, sizes = np.random.default_rng(4), (8, 8, 8, 16)
    quiet = [permuted(worlds(rng, 0).mean(axis=2), sizes, 199).p <= 0.05 for _ in range(ROUNDS)]
    assert np.mean(quiet) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / ROUNDS)
    both = []
    for _ in range(ROUNDS):
        vectors = worlds(rng, 0.005)
        both.append((permuted(vectors.mean(axis=2), sizes, 199).p <= 0.05, over_seeds(vectors, sizes).p_seeds <= 0.05))
    over_tasks, told = np.mean([a for a, _ in both]), np.mean([a and b for a, b in both])
    assert over_tasks > 0.15
    assert told <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / ROUNDS)
