"""An effect of several degrees of freedom over tasks and seeds: against its formula, and its level."""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.contrasts import effect_contrasts, helmert
from analysis.statistics.interaction import effect_over_seeds
from analysis.statistics.seeds import pair_test, spreads, two_sided


def drawn(shape, draw=0, sd=(1.0, 0.8, 0.7), spread=1.0):
    """Scores [designs, tasks, seeds]: parts of task, seed and rest of each design; spread: of the seeds, by design."""
    (designs, tasks, seeds), rng = shape, np.random.default_rng(draw)
    shapes = ((designs, tasks, 1), (designs, 1, seeds), (designs, tasks, seeds))
    task, seed, rest = (size * rng.normal(size=shape) for size, shape in zip(sd, shapes, strict=True))
    return task + np.reshape(spread, (-1, 1, 1)) * seed + rest


def quasi_f(cube, columns):
    return effect_over_seeds(spreads(cube), columns)


@pytest.mark.parametrize("draw", range(4))
def test_it_is_its_formula_by_hand(draw):
    """Each design with its own seeds; the variances of seeds are their own or drawn towards all; the larger p."""
    cube, columns, counts = drawn((5, 9, 6), draw, spread=[4, 1, 1, 1, 1]), helmert(5)[:, 1:3], (3, 4, 6, 3, 5)
    for design, count in enumerate(counts):
        cube[design, :, count:] = np.nan
    means, own, rest = np.nanmean(cube, axis=2), [], []
    for of, count in zip(cube, counts, strict=True):
        runs = of[:, :count]
        own.append(runs.mean(axis=0).var(ddof=1))
        left = runs - runs.mean(axis=0) - runs.mean(axis=1)[:, None] + runs.mean()
        rest.append((left**2).sum() / 8 / (count - 1))
    n, share = np.array(counts), (columns**2).sum(axis=1) / 2
    own, rest = np.array(own), np.array(rest)
    pooled = (own * (n - 1)).sum() / (n - 1).sum()
    vectors, chances = means.T @ columns, []
    mean, of_tasks = vectors.mean(axis=0), vectors.var(axis=0, ddof=1).mean() / 9
    for extra in (0, 2):
        seeds = (extra * pooled + (n - 1) * own) / (extra + n - 1) / n
        error = of_tasks + (share * seeds).sum() - (share * rest / 9 / n).sum()
        doubt = of_tasks**2 / 16 + ((share * seeds) ** 2 / (n - 1 + extra)).sum()
        doubt += ((share * rest / 9 / n) ** 2 / 8 / (n - 1)).sum()
        covariance = np.cov(vectors.T) / 9 + columns.T @ np.diag(seeds) @ columns
        epsilon = np.trace(covariance) ** 2 / (2 * (covariance**2).sum())
        chances.append(stats.f.sf((mean @ mean) / 2 / error, 2 * epsilon, epsilon * error**2 / doubt))
    assert quasi_f(cube, columns).p_seeds == pytest.approx(max(chances), rel=1e-9)


@pytest.mark.parametrize("sd", [(1, 0.8, 0.7), (0.1, 3, 0.2), (0.01, 0.01, 1), (0, 0, 0)])
def test_with_two_designs_it_is_the_test_of_the_pair(sd):
    for draw in range(5):
        cube = drawn((2, 8, 3), draw, sd) + 1e-14 * np.arange(3)  # no copies
        pair = two_sided(pair_test(spreads(cube), np.array([0]), np.array([1])))
        assert quasi_f(cube, helmert(2)).p_seeds == pytest.approx(pair[0], rel=1e-9)


def test_which_contrasts_are_taken_and_what_designs_share_on_a_task_change_nothing():
    cube, rng = drawn((4, 7, 3)), np.random.default_rng(1)
    other = np.linalg.qr(np.column_stack([np.ones(4), rng.normal(size=(4, 3))]))[0][:, 1:]
    ours = list(vars(quasi_f(cube, helmert(4))).values())
    np.testing.assert_allclose(list(vars(quasi_f(cube, other)).values()), ours)
    np.testing.assert_allclose(list(vars(quasi_f(cube + rng.normal(size=(1, 7, 1)), helmert(4))).values()), ours)


@pytest.mark.parametrize("sd", [(0.02, 0.003, 0.01), (0.02, 0.01, 0.01)])
def test_level_where_one_design_varies_four_times_as_much_with_the_seed(sd):
    """400 data sets without an effect, 40 tasks, three seeds; standard error 1.1 %."""
    contrasts, spread = effect_contrasts({"pooler": 3, "attn": 2}), np.array([4, 1, 1, 1, 1, 1])
    found = []
    for draw in range(200):
        cube = drawn((6, 40, 3), draw, sd, spread / np.sqrt((spread**2).mean()))
        found += [quasi_f(cube, contrasts[effect]).p_seeds <= 0.05 for effect in (("pooler",), ("pooler", "attn"))]
    assert np.mean(found) <= 0.09
