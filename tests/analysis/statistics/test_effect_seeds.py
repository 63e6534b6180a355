"""An effect of several degrees of freedom over tasks and seeds: against an analysis of variance, and its level."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from analysis.statistics.contrasts import effect_contrasts, helmert
from analysis.statistics.interaction import effect_over_seeds
from analysis.statistics.seed_errors import contrast_spread
from analysis.statistics.seeds import over_tasks_and_seeds, two_sided
from analysis.statistics.sign_flip import sign_flip


def drawn(shape, draw=0, sd=(1.0, 0.8, 0.7), spread=1.0):
    """Scores [designs, tasks, seeds]: parts of task, seed and rest of each design; spread: of the seeds, by design."""
    (designs, tasks, seeds), rng = shape, np.random.default_rng(draw)
    shapes = ((designs, tasks, 1), (designs, 1, seeds), (designs, tasks, seeds))
    task, seed, rest = (size * rng.normal(size=shape) for size, shape in zip(sd, shapes, strict=True))
    return task + np.reshape(spread, (-1, 1, 1)) * seed + rest


def quasi_f(cube, columns):
    return effect_over_seeds(np.einsum("dts,dk->tks", cube, columns))


@pytest.mark.parametrize("draw", range(3))
def test_it_is_the_quasi_f_of_statsmodels(draw):
    """Design fixed, task and seed random: MS design over MS design x task + MS design x seed - MS rest."""
    cube = drawn((4, 9, 5), draw)
    design, task, seed = (index.ravel() for index in np.indices(cube.shape))
    long = pd.DataFrame({"y": cube.ravel(), "d": design, "t": task, "s": seed})
    anova = anova_lm(ols("y ~ C(d) * C(t) + C(d) * C(s) + C(t) * C(s)", long).fit())
    squares, df = anova["mean_sq"], anova["df"]
    names = ["C(d):C(t)", "C(d):C(s)", "Residual"]
    parts, dfs = squares[names].to_numpy(), df[names].to_numpy()
    error = parts @ [1, 1, -1]
    assert error > parts.max()
    ours = quasi_f(cube, helmert(4))
    assert pytest.approx(squares["C(d)"] / error, rel=1e-9) == ours.F_seeds
    covariance = np.cov(cube.mean(axis=2)) / 9 + np.cov(cube.mean(axis=1)) / 5
    centred = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean()
    roots = np.linalg.eigvalsh(centred)  # of designs, in place of contrasts
    epsilon = roots.sum() ** 2 / (3 * (roots**2).sum())
    assert ours.df_seeds == pytest.approx(3 * epsilon, rel=1e-9)
    assert ours.df_error_seeds == pytest.approx(epsilon * error**2 / (parts**2 / dfs).sum(), rel=1e-9)
    assert ours.p_seeds == pytest.approx(stats.f.sf(ours.F_seeds, ours.df_seeds, ours.df_error_seeds), rel=1e-9)


@pytest.mark.parametrize("sd", [(1, 0.8, 0.7), (0.1, 3, 0.2), (0.01, 0.01, 1), (0, 0, 0)])
def test_with_two_designs_it_is_the_test_of_the_pair(sd):
    for draw in range(5):
        cube = drawn((2, 8, 3), draw, sd) + np.array([-0.1, 0.0, 0.1])  # what a seed does to both is in no difference
        pair = two_sided(over_tasks_and_seeds(cube, np.array([0]), np.array([1])))
        assert quasi_f(cube, helmert(2)).p_seeds == pytest.approx(pair[0], rel=1e-9)


def test_which_contrasts_are_taken_and_what_all_designs_share_change_nothing():
    cube, rng = drawn((4, 7, 3)), np.random.default_rng(1)
    other = np.linalg.qr(np.column_stack([np.ones(4), rng.normal(size=(4, 3))]))[0][:, 1:]
    ours = list(vars(quasi_f(cube, helmert(4))).values())
    np.testing.assert_allclose(list(vars(quasi_f(cube, other)).values()), ours)
    np.testing.assert_allclose(list(vars(quasi_f(cube + rng.normal(size=(1, 7, 3)), helmert(4))).values()), ours)


@pytest.mark.parametrize("draw", range(4))
def test_the_mean_square_of_seeds_is_drawn_towards_that_of_all_contrasts(draw):
    """As if that were known from two degrees of freedom; the larger p counts."""
    cube, columns = drawn((5, 9, 3), draw, spread=[4, 1, 1, 1, 1]), helmert(5)[:, 1:3]
    means = cube.mean(axis=1)
    left = means - means.mean(axis=0) - means.mean(axis=1)[:, None] + means.mean()
    of_all = contrast_spread(cube)
    assert of_all == pytest.approx((left**2).sum() / (4 * 2), rel=1e-9)
    vectors = np.einsum("dts,dk->tks", cube, columns)
    by_task, by_seed, mean = vectors.mean(axis=2), vectors.mean(axis=0), vectors.mean(axis=(0, 2))
    rests = vectors - by_task[:, :, None] - by_seed + mean[:, None]
    parts = np.array([by_task.var(axis=0, ddof=1) / 9, by_seed.var(axis=1, ddof=1) / 3, mean]).mean(axis=1)
    parts[2] = (rests**2).sum() / (2 * 8 * 2) / 27
    covariance = np.cov(by_task.T) / 9 + np.cov(by_seed) / 3
    epsilon = np.trace(covariance) ** 2 / (2 * (covariance**2).sum())
    chances = []
    for of_seed, df in ((parts[1], 4), ((4 * parts[1] + 2 * of_all / 3) / 6, 6)):
        error = parts[0] + of_seed - parts[2]
        doubt = parts[0] ** 2 / 16 + of_seed**2 / df + parts[2] ** 2 / 32
        chances.append(stats.f.sf((mean @ mean) / 2 / error, 2 * epsilon, epsilon * error**2 / doubt))
    assert chances[0] != pytest.approx(chances[1])
    assert effect_over_seeds(vectors).p_seeds == pytest.approx(chances[0], rel=1e-9)
    assert effect_over_seeds(vectors, of_all).p_seeds == pytest.approx(max(chances), rel=1e-9)


def test_a_design_that_has_one_run_with_every_seed_is_not_in_the_mean_of_all():
    cube = drawn((5, 9, 3))
    fixed = np.concatenate([np.repeat(drawn((1, 9, 1), 1), 3, axis=2), cube])
    assert contrast_spread(fixed) == contrast_spread(cube)
    assert np.isnan(contrast_spread(cube[:2]))


@pytest.mark.parametrize("levels", [3, 6])
@pytest.mark.parametrize("sd", [(0.02, 0.003, 0.01), (0.02, 0.01, 0.01)])
def test_level_where_one_design_varies_four_times_as_much_with_the_seed(levels, sd):
    """400 data sets without an effect, 40 tasks, three seeds; standard error 1.1 %. Over tasks alone far more."""
    contrasts = effect_contrasts({"pooler": levels, "attn": 2})
    spread, over_tasks, told = np.array([4, *[1] * (2 * levels - 1)]), [], []
    spread = spread / np.sqrt((spread**2).mean())
    for draw in range(200):
        cube = drawn((2 * levels, 40, 3), [draw, levels], sd, spread)
        for effect in (("pooler",), ("pooler", "attn")):
            vectors = np.einsum("dts,dk->tks", cube, contrasts[effect])
            over_tasks.append(sign_flip(vectors.mean(axis=2)).p <= 0.05 if draw < 20 else True)
            told.append(effect_over_seeds(vectors).p_seeds <= 0.05)
    assert np.mean(told) <= 0.08
    assert (np.mean(over_tasks[:40]) > 0.2) == (sd[1] > 0.005)
