"""The mean squares of seeds drawn towards those of all designs: against loops, and the level of whole families."""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.correction import holm
from analysis.statistics.seeds import compare_runs, over_tasks_and_seeds, reach_of_seeds, two_sided
from analysis.statistics.wilcoxon import signed_rank


def of_seeds(difference):
    """The mean square of the seeds of a table [tasks, seeds]."""
    return difference.shape[0] * difference.mean(axis=0).var(ddof=1)


def by_hand(difference, of_seed, df):
    """Squared error and degrees of freedom with this mean square of the seeds, where the sum is no less than a part."""
    tasks, seeds = difference.shape
    of_task = seeds * difference.mean(axis=1).var(ddof=1)
    left = difference - difference.mean(axis=0) - difference.mean(axis=1)[:, None] + difference.mean()
    rest = (left**2).sum() / ((tasks - 1) * (seeds - 1))
    whole = of_task + of_seed - rest
    assert whole >= max(of_task, of_seed, rest)
    doubt = of_task**2 / (tasks - 1) + of_seed**2 / df + rest**2 / ((tasks - 1) * (seeds - 1))
    return whole / (tasks * seeds), whole**2 / doubt


def runs(designs, tasks, seeds, spread, draw=0):
    """Scores [designs, tasks, seeds] with these spreads of task, seed (one per design, or one) and rest."""
    rng, (task, seed, rest) = np.random.default_rng(draw), spread
    of_seed = np.broadcast_to(seed, designs)[:, None, None] * rng.normal(size=(designs, 1, seeds))
    return task * rng.normal(size=(designs, tasks, 1)) + of_seed + rest * rng.normal(size=(designs, tasks, seeds))


def test_paired_it_is_the_mean_over_all_pairs_with_two_degrees_of_freedom():
    cube, seeds = runs(5, 12, 4, (1, [0.1, 0.5, 2, 0.3, 1], 0.5)) + runs(1, 1, 4, (0, 3, 0)), 4
    first, second = np.triu_indices(5, k=1)
    squares = [of_seeds(cube[b] - cube[a]) for a, b in zip(first, second, strict=True)]
    found, wider = over_tasks_and_seeds(cube, first, second), 0
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        drawn = (2 * np.mean(squares) + (seeds - 1) * squares[k]) / (seeds + 1)
        squared, df = by_hand(cube[b] - cube[a], drawn, seeds + 1)
        assert (found.error_moderated[k], found.df_moderated[k]) == pytest.approx((np.sqrt(squared), df))
        p = [2 * stats.t.sf(abs(found.mean_seeds[k]) / np.sqrt(squared), df)]
        squared, df = by_hand(cube[b] - cube[a], squares[k], seeds - 1)
        p.append(2 * stats.t.sf(abs(found.mean_seeds[k]) / np.sqrt(squared), df))
        assert two_sided(found)[k] == pytest.approx(max(p))
        wider += p[0] > p[1]
    assert 0 < wider < len(first), "either may be the larger"


def test_unpaired_each_side_is_drawn_towards_all_designs_by_their_degrees_of_freedom():
    cube, counts = np.full((4, 15, 15), np.nan), (3, 5, 4, 3)
    for k, (start, count) in enumerate(zip((0, 3, 8, 12), counts, strict=True)):
        cube[k, :, start : start + count] = runs(1, 15, count, (1, 0.2 + 0.4 * k, 0.3), draw=k)[0]
    own = [cube[k][:, ~np.isnan(cube[k, 0])] for k in range(4)]
    every = sum(of_seeds(table) * (table.shape[1] - 1) for table in own) / sum(n - 1 for n in counts)
    found = over_tasks_and_seeds(cube, np.array([0]), np.array([1]))
    assert not found.seeds_paired[0]
    parts = [(own[1].mean(axis=1) - own[0].mean(axis=1)).var(ddof=1) / 15]
    doubts = [parts[0] ** 2 / 14]
    for table in own[:2]:
        n = table.shape[1]
        drawn = (2 * every + (n - 1) * of_seeds(table)) / (n + 1) / (15 * n)
        left = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
        rest = (left**2).sum() / (14 * (n - 1)) / (15 * n)
        parts += [drawn, -rest]
        doubts += [drawn**2 / (n + 1), rest**2 / (14 * (n - 1))]
    assert found.error_moderated[0] ** 2 == pytest.approx(sum(parts))
    assert found.df_moderated[0] == pytest.approx(sum(parts) ** 2 / sum(doubts))


def test_without_other_designs_nothing_is_drawn():
    cube = runs(2, 9, 3, (1, 0.5, 0.5))
    place = np.array([0]), np.array([1])
    found, alone = (
        over_tasks_and_seeds(cube, *place),
        over_tasks_and_seeds(runs(6, 9, 3, (1, 2, 1)), *place, alone=True),
    )
    for of in (found, alone, compare_runs(cube[:1], cube[1:], paired=False)):
        assert (of.error_moderated, of.df_moderated) == (of.error_seeds, of.df_seeds)


def test_against_a_constant_the_spread_is_that_of_single_designs():
    """An encoder that nothing trained varies with no seed: what seeds do to all designs does not cancel there."""
    cube = runs(4, 12, 3, (1, 0.5, 0.5)) + runs(1, 1, 3, (0, 3, 0))
    cube[0] = cube[0, :, :1]
    found, own = over_tasks_and_seeds(cube, np.array([0, 1]), np.array([1, 2])), of_seeds(cube[1] - cube[0])
    drawn = (2 * np.mean([of_seeds(cube[k]) for k in (1, 2, 3)]) + 2 * own) / 4
    assert found.error_moderated[0] ** 2 == pytest.approx(by_hand(cube[1] - cube[0], drawn, 4)[0])
    others = over_tasks_and_seeds(cube[1:], np.array([0]), np.array([1]))
    assert found.error_moderated[1] == others.error_moderated[0], "the constant is no design whose seeds count"


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_p_passes_exactly_where_the_interval_leaves_out_0(level):
    cube = runs(12, 6, 3, (1, np.geomspace(0.1, 3, 12), 0.5)) + np.linspace(0, 6, 12)[:, None, None]
    first, second = np.triu_indices(12, k=1)
    found = over_tasks_and_seeds(cube, first, second)
    passes = two_sided(found) <= 1 - level
    assert (passes == (np.abs(found.mean_seeds) > reach_of_seeds(found, level))).all()
    assert 0 < passes.sum() < len(passes)


SPREADS = {
    "alike": np.full(7, 0.0044),
    "one stray": np.array([0.018] + [0.0044] * 6),
    "own": np.geomspace(0.002, 0.012, 7),
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("seeds", [3, 5])
def test_in_a_family_nothing_is_told_more_often_than_alpha(seeds, spread):
    """Seven equal designs, 56 tasks, 500 sets, standard error .010: any of the six with one, and any of all 21."""
    rng, (first, second) = np.random.default_rng(seeds), np.triu_indices(7, k=1)
    told, alone = np.zeros(2), np.zeros(2)
    for draw in rng.integers(0, 2**31, 500):
        cube = runs(7, 56, seeds, (0.017, SPREADS[spread], 0.009), draw)
        over_tasks = signed_rank((cube[second] - cube[first]).mean(axis=2)).p
        for count, only in ((told, False), (alone, True)):
            p = two_sided(over_tasks_and_seeds(cube, first, second, alone=only))
            for k, family in enumerate((first == 0, first >= 0)):
                count[k] += ((holm(over_tasks[family]) <= 0.05) & (holm(p[family]) <= 0.05)).any()
    assert (told / 500 <= 0.05 + 0.03).all()
    assert (told <= alone).all()
    if seeds == 3 and spread != "own":
        assert alone[1] / 500 > 0.07, "the pairs' own seeds alone are told too often"
