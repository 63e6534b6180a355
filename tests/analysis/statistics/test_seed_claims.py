"""What a claim about designs takes beside the test over tasks: the mean over tasks and seeds, each pair by itself."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from analysis.statistics.seed_errors import copies
from analysis.statistics.seeds import (
    SeedMeans,
    compare_runs,
    outside,
    over_tasks_and_seeds,
    two_sided,
)
from analysis.statistics.wilcoxon import signed_rank

FIRST, SECOND = np.array([0]), np.array([1])


def drawn(tasks=9, seeds=4, designs=2, draw=0):
    rng = np.random.default_rng(draw)
    parts = [rng.normal(0, sd, shape) for sd, shape in ((1, (tasks, 1)), (0.7, (1, seeds)), (1, (tasks, seeds)))]
    return rng.normal(0, 1, (designs, tasks, seeds)) + sum(parts)


@pytest.mark.parametrize("draw", range(4))
def test_the_error_is_that_of_an_analysis_of_variance_by_statsmodels(draw):
    cube = drawn(draw=draw)
    _, tasks, seeds = cube.shape
    difference = cube[1] - cube[0]
    task, seed = np.indices(difference.shape)
    table = pd.DataFrame({"y": difference.ravel(), "task": task.ravel(), "seed": seed.ravel()})
    squares = anova_lm(ols("y ~ C(task) + C(seed)", table).fit())["sum_sq"].to_numpy()
    df = np.array([tasks - 1, seeds - 1, (tasks - 1) * (seeds - 1)])
    ms = squares / df
    whole = max(ms[0] + ms[1] - ms[2], *ms)
    freedom = whole**2 / (ms**2 / df).sum() if whole == ms[0] + ms[1] - ms[2] else df[ms.argmax()]
    error = np.sqrt(whole / (tasks * seeds))
    of = over_tasks_and_seeds(cube, FIRST, SECOND)
    np.testing.assert_allclose([of.mean_seeds[0], of.error_seeds[0]], [difference.mean(), error], rtol=1e-10)
    np.testing.assert_allclose(of.df_seeds, freedom, rtol=1e-9)
    t = difference.mean() / error
    np.testing.assert_allclose(two_sided(of), 2 * stats.t.sf(abs(t), freedom), rtol=1e-9)
    margin = 0.4
    ends = [
        stats.t.sf((difference.mean() + margin) / error, freedom),
        stats.t.cdf((difference.mean() - margin) / error, freedom),
    ]
    np.testing.assert_allclose(outside(of, margin), max(ends), rtol=1e-9)


def test_a_pair_takes_the_seeds_that_both_have_and_none_below_three():
    cube = drawn(seeds=6, designs=4)
    cube[1, :, 0] = cube[2, :, :3] = np.nan  # seeds 1-5; 3-5
    cube[3, :, 2:] = np.nan  # seeds 0-1
    first, second = np.array([0, 0, 1, 0]), np.array([1, 2, 2, 3])
    of = over_tasks_and_seeds(cube, first, second)
    assert of.n_seeds.tolist() == [5, 3, 3, 2]
    assert of.seeds_paired.all()
    for k, seeds in enumerate((slice(1, 6), slice(3, 6), slice(3, 6))):
        alone = over_tasks_and_seeds(cube[[first[k], second[k]]][:, :, seeds], FIRST, SECOND)
        assert alone.error_moderated == alone.error_seeds
        for name in ("mean_seeds", "error_seeds", "df_seeds"):
            assert getattr(of, name)[k] == getattr(alone, name)[0]
    assert np.isnan(two_sided(of)[3])
    assert np.isnan(outside(of, 0.1)[3])


def test_runs_without_three_common_seeds_are_compared_unpaired():
    cube = drawn(seeds=7, designs=3)
    cube[0, :, 3:] = cube[1, :, :1] = cube[1, :, 5:] = cube[2, :, :5] = np.nan  # seeds 0-2; 1-4; 5 and 6
    of = over_tasks_and_seeds(cube, np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert of.n_seeds.tolist() == [3, 0, 0]
    assert of.seeds_paired.tolist() == [False, True, True]
    alone = compare_runs(cube[:1, :, :3], cube[1:2, :, 1:5], paired=False)
    assert of.error_seeds[0] == alone.error_seeds[0]
    assert two_sided(alone)[0] <= two_sided(of)[0] < 1
    assert np.isnan(two_sided(of)[1:]).all()
    assert of.mean_seeds[0] == pytest.approx(cube[1, :, 1:5].mean() - cube[0, :, :3].mean())


@pytest.mark.parametrize("seeds", [(3, 3), (3, 10), (6, 4)])
def test_unpaired_is_welch_over_seeds_without_a_rest_and_student_over_tasks_without_seeds(seeds):
    rng, tasks = np.random.default_rng(3), 12
    common = rng.normal(size=(tasks, 1))
    one, other = (common + sd * rng.normal(size=(1, n)) for sd, n in zip((1, 4), seeds, strict=True))
    p = two_sided(compare_runs(one[None], other[None], paired=False))
    welch = stats.ttest_ind(other.mean(axis=0), one.mean(axis=0), equal_var=False).pvalue
    np.testing.assert_allclose(p, welch, rtol=1e-9)
    one, other = (rng.normal(0.2 * k, 1, (tasks, 1)) + 1e-13 * np.arange(n) for k, n in enumerate(seeds))  # no copies
    p = two_sided(compare_runs(one[None], other[None], paired=False))
    np.testing.assert_allclose(p, stats.ttest_rel(other[:, 0], one[:, 0]).pvalue, rtol=1e-9)


def test_the_unpaired_error_is_that_of_an_analysis_of_variance_per_design_by_statsmodels():
    rng, tasks = np.random.default_rng(4), 9
    tables = [sum(rng.normal(size=shape) for shape in ((tasks, 1), (1, n), (tasks, n))) for n in (3, 5)]
    differences = tables[1].mean(axis=1) - tables[0].mean(axis=1)
    parts, whole = [(differences.var(ddof=1) / tasks, tasks - 1)], differences.var(ddof=1) / tasks
    for table in tables:
        task, seed = np.indices(table.shape)
        long = pd.DataFrame({"y": table.ravel(), "task": task.ravel(), "seed": seed.ravel()})
        anova = anova_lm(ols("y ~ C(task) + C(seed)", long).fit())
        of_seed, rest = anova["mean_sq"].iloc[1:].to_numpy() / table.size
        parts += [(of_seed, anova["df"].iloc[1]), (rest, anova["df"].iloc[2])]
        whole += of_seed - rest
    assert whole > max(parts[0][0], parts[1][0] + parts[3][0]), "no part may be larger than the whole"
    of = compare_runs(tables[0][None], tables[1][None], paired=False)
    np.testing.assert_allclose(of.error_seeds, np.sqrt(whole), rtol=1e-9)
    np.testing.assert_allclose(of.df_seeds, whole**2 / sum(part**2 / df for part, df in parts), rtol=1e-9)


def test_many_pairs_at_once_are_those_one_by_one(monkeypatch):
    cube = drawn(seeds=3, designs=12)
    cube[::3, :, :1] = np.nan
    cube = np.concatenate([cube, np.where(np.isnan(cube), 0.1, np.nan), drawn(seeds=3, designs=12, draw=1)], axis=2)
    first, second = np.triu_indices(12, k=1)
    whole = over_tasks_and_seeds(cube, first, second)
    monkeypatch.setattr("analysis.statistics.seeds.AT_ONCE", 5 * cube[0].size)
    for name in SeedMeans.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(over_tasks_and_seeds(cube, first, second), name), getattr(whole, name))


def test_equal_scores_are_told_of_no_design_and_within_any_margin():
    equal = np.full((2, 5, 3), 0.4) + np.array([-0.1, 0.0, 0.1])
    of = over_tasks_and_seeds(equal, FIRST, SECOND)
    assert two_sided(of) == [1.0]
    assert outside(of, 0.001) == [0.0]
    assert outside(of, 0.0) == [1.0]
    shifted = equal + np.array([0, 0.01])[:, None, None]
    assert two_sided(over_tasks_and_seeds(shifted, FIRST, SECOND)) == [0.0]


def test_copies_of_one_run_are_no_seeds():
    """An untrained encoder scored under three seeds: against its like no claim, against trained runs a constant."""
    rng = np.random.default_rng(5)
    cube = rng.normal(size=(3, 20, 3))
    cube[:2] = cube[:2, :, :1]
    found = over_tasks_and_seeds(cube, np.array([0, 0]), np.array([1, 2]))
    assert found.n_seeds.tolist() == [1, 3]
    assert found.copies.tolist() == [True, False]
    assert np.isnan([found.mean_seeds[0], found.error_seeds[0], two_sided(found)[0]]).all()
    np.testing.assert_allclose(found.mean_seeds[1], (cube[2] - cube[0]).mean(), rtol=1e-12)
    assert copies(cube).tolist() == [True, True, False]


# sd of task, seed and rest in a pair's difference; the seed's spread of the second design is four times the first's
@pytest.mark.parametrize(("seeds", "most"), [(3, 0.075), (5, 0.065)])
@pytest.mark.parametrize("spread", [(0.02, 0.0, 0.01), (0.02, 0.003, 0.01), (0.02, 0.01, 0.01)])
def test_the_rule_keeps_its_level_where_designs_differ_in_how_much_a_seed_matters(seeds, most, spread):
    """3,000 pairs without a difference; standard error .004. The test over tasks alone rejects up to 31 %."""
    rng, tasks, pairs = np.random.default_rng(5), 40, 3000
    shapes = ((tasks, 1), (1, seeds), (tasks, seeds))
    shares = np.sqrt([[0.5, 1 / 17, 0.5], [0.5, 16 / 17, 0.5]])
    cube = np.concatenate(
        [
            sum(
                share * sd * rng.normal(size=(pairs, *shape))
                for share, sd, shape in zip(of, spread, shapes, strict=True)
            )
            for of in shares
        ]
    )
    first, second = np.arange(pairs), np.arange(pairs, 2 * pairs)
    over_tasks = signed_rank((cube[second] - cube[first]).mean(axis=2)).p <= 0.05
    told = over_tasks & (two_sided(over_tasks_and_seeds(cube, first, second, alone=True)) <= 0.05)
    assert told.mean() <= most
    assert (over_tasks.mean() > 0.2) == (spread[1] > 0.005), "without the rule the seeds are taken for designs"


@pytest.mark.parametrize(("seeds", "most"), [((3, 3), 0.08), ((3, 10), 0.065), ((10, 3), 0.085), ((5, 5), 0.065)])
@pytest.mark.parametrize("spread", [(0.02, 0.003, 0.01), (0.02, 0.01, 0.01)])
def test_the_rule_keeps_its_level_unpaired(seeds, most, spread):
    """2,000 pairs without a difference, the second's spread over seeds four times the first's; standard error .005."""
    rng, tasks, pairs = np.random.default_rng(7), 40, 2000
    shares = np.sqrt([[0.5, 1 / 17, 0.5], [0.5, 16 / 17, 0.5]])
    one, other = (
        sum(
            share * sd * rng.normal(size=(pairs, *shape))
            for share, sd, shape in zip(of, spread, ((tasks, 1), (1, n), (tasks, n)), strict=True)
        )
        for of, n in zip(shares, seeds, strict=True)
    )
    over_tasks = signed_rank(other.mean(axis=2) - one.mean(axis=2)).p <= 0.05
    p = two_sided(compare_runs(one, other, paired=False))
    assert (over_tasks & (p <= 0.05)).mean() <= most
    assert (over_tasks.mean() > 0.12) == (spread[1] > 0.005)
