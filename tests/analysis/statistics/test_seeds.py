"""The primary test: against its formula by loops, Welch's and Student's tests, a mixed model, and its level."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.statistics.contrasts import helmert
from analysis.statistics.interaction import effect_over_seeds, over_seeds
from analysis.statistics.seeds import compare_runs, copies, outside, pair_test, reach, spreads, two_sided

FIRST, SECOND = np.array([0]), np.array([1])


def drawn(designs=4, tasks=9, seeds=4, sd=(1, 0.7, 1), draw=0):
    """Scores [designs, tasks, seeds] with spreads of task, seed (one, or one per design) and rest of each design."""
    rng = np.random.default_rng(draw)
    of_seed = np.broadcast_to(sd[1], designs)[:, None, None] * rng.normal(size=(designs, 1, seeds))
    noise = sd[0] * rng.normal(size=(designs, tasks, 1)) + sd[2] * rng.normal(size=(designs, tasks, seeds))
    return rng.normal(size=(1, tasks, 1)) + noise + of_seed


def by_loops(runs, a, b, margin=0.0):
    """Mean difference, p, half the 95 % interval and p at the margin of runs [design][task][seed], spelt out."""
    tasks = len(runs[0])
    means = [[sum(row) / len(row) for row in of] for of in runs]
    differences = [y - x for x, y in zip(means[a], means[b], strict=True)]
    mean = sum(differences) / tasks
    of_tasks = sum((d - mean) ** 2 for d in differences) / (tasks - 1) / tasks
    spread, rest, count = [], [], [len(of[0]) for of in runs]
    for of, mean_of in zip(runs, means, strict=True):
        s = len(of[0])
        by_seed = [sum(row[k] for row in of) / tasks for k in range(s)]
        whole = sum(by_seed) / s
        spread.append(sum((x - whole) ** 2 for x in by_seed) / (s - 1))
        left = [(of[t][k] - mean_of[t] - by_seed[k] + whole) ** 2 for t in range(tasks) for k in range(s)]
        rest.append(sum(left) / (tasks - 1) / (s - 1))
    free = [s - 1 for s in count]
    pooled = sum(v * f for v, f in zip(spread, free, strict=True)) / sum(free)
    found = []
    for extra in (0, 2):
        of_seeds = sum((extra * pooled + free[d] * spread[d]) / (extra + free[d]) / count[d] for d in (a, b))
        of_rest = sum(rest[d] / tasks / count[d] for d in (a, b))
        doubts = [
            of_tasks**2 / (tasks - 1),
            sum(
                ((extra * pooled + free[d] * spread[d]) / (extra + free[d]) / count[d]) ** 2 / (free[d] + extra)
                for d in (a, b)
            ),
            sum((rest[d] / tasks / count[d]) ** 2 / (tasks - 1) / free[d] for d in (a, b)),
        ]
        parts = [of_tasks, of_seeds, of_rest]
        squared, doubt = of_tasks + of_seeds - of_rest, sum(doubts)
        if squared < max(parts):
            squared, doubt = max(parts), doubts[parts.index(max(parts))]
        error, df = squared**0.5, max(1.0, squared**2 / doubt)
        one_sided = [stats.t.cdf((side * mean - margin) / error, df) for side in (1, -1)]
        found.append((2 * stats.t.sf(abs(mean) / error, df), stats.t.isf(0.025, df) * error, max(one_sided)))
    return mean, *map(max, zip(*found, strict=True))


@pytest.mark.parametrize("sd", [(1, 0.7, 1), (0.1, [3, 0.2, 1, 1, 0.1], 0.3), (0.05, 0.05, 2)])
def test_it_is_its_formula_by_loops(sd):
    counts = (4, 3, 5, 3, 6)
    cube = drawn(5, 7, 6, sd)
    for design, count in enumerate(counts):
        cube[design, :, count:] = np.nan
    runs = [of[:, :count].tolist() for of, count in zip(cube, counts, strict=True)]
    first, second = np.triu_indices(5, k=1)
    found = pair_test(spreads(cube), first, second)
    ours = found.mean, two_sided(found), reach(found, 0.95), outside(found, 0.3)
    theirs = [by_loops(runs, a, b, 0.3) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(np.transpose(ours), theirs, rtol=1e-9)
    assert found.n_seeds.tolist() == [min(counts[a], counts[b]) for a, b in zip(first, second, strict=True)]


@pytest.mark.parametrize("draw", [0, 2, 3])
def test_with_equal_variances_of_seeds_it_is_a_mixed_model_of_statsmodels(draw):
    """Task, design x task and seed random: the error of the fixed difference by REML, where no part is at its bound."""
    import statsmodels.formula.api as smf

    cube = drawn(2, 14, 6, (0.8, 1, 0.7), draw)
    runs = cube.mean(axis=1)
    cube[1] += ((runs[1] - runs[1].mean()) * (runs[0].std() / runs[1].std() - 1))[None]  # now they are equal
    left = cube - cube.mean(axis=1, keepdims=True) - cube.mean(axis=2, keepdims=True) + cube.mean((1, 2), keepdims=True)
    cube[1] += left[1] * (left[0].std() / left[1].std() - 1)
    design, task, seed = (index.ravel() for index in np.indices(cube.shape))
    long = pd.DataFrame({"y": cube.ravel(), "x": design, "task": task, "seed": 10 * design + seed, "one": 1})
    long["cell"] = 100 * long["x"] + long["task"]
    parts = {name: f"0 + C({name})" for name in ("task", "cell", "seed")}
    fitted = smf.mixedlm("y ~ x", long, groups="one", re_formula="0", vc_formula=parts).fit(reml=True)
    found = pair_test(spreads(cube), FIRST, SECOND)
    assert fitted.vcomp.min() > 1e-3, "a component at its bound is another estimate"
    assert found.mean[0] == pytest.approx(fitted.params["x"], rel=1e-4)
    assert found.error[0] == pytest.approx(fitted.bse["x"], rel=2e-3)


@pytest.mark.parametrize("seeds", [(3, 3), (3, 10), (6, 4)])
def test_it_is_welch_over_seeds_without_a_rest_and_student_over_tasks_without_seeds(seeds):
    rng, tasks = np.random.default_rng(3), 12
    common = rng.normal(size=(tasks, 1))
    one, other = (common + sd * rng.normal(size=(1, n)) for sd, n in zip((1, 4), seeds, strict=True))
    welch = stats.ttest_ind(other.mean(axis=0), one.mean(axis=0), equal_var=False).pvalue
    np.testing.assert_allclose(two_sided(compare_runs(one[None], other[None])), welch, rtol=1e-9)
    one, other = (rng.normal(0.2 * k, 1, (tasks, 1)) + 1e-13 * np.arange(n) for k, n in enumerate(seeds))  # no copies
    student = stats.ttest_rel(other[:, 0], one[:, 0]).pvalue
    np.testing.assert_allclose(two_sided(compare_runs(one[None], other[None])), student, rtol=1e-9)


def test_below_three_seeds_there_is_no_test_and_two_designs_are_drawn_towards_no_others():
    cube = drawn(4, seeds=6)
    cube[3, :, 2:] = np.nan
    found = pair_test(spreads(cube), np.array([0, 0]), np.array([1, 3]))
    assert found.n_seeds.tolist() == [6, 2]
    assert np.isnan(two_sided(found)).tolist() == np.isnan(outside(found, 0.1)).tolist() == [False, True]
    for of in (pair_test(spreads(cube[:2]), FIRST, SECOND), compare_runs(cube[:1], cube[1:2])):
        assert (of.error_shrunk, of.df_shrunk) == (of.error, of.df)


def test_studies_at_once_are_those_one_by_one():
    cubes = np.stack([drawn(draw=draw) for draw in range(6)]).reshape(2, 3, 4, 9, 4)
    first, second = np.triu_indices(4, k=1)
    whole = two_sided(pair_test(spreads(cubes), first, second))
    for place in np.ndindex(2, 3):
        alone = two_sided(pair_test(spreads(cubes[place]), first, second))
        np.testing.assert_allclose(whole[place], alone, rtol=1e-12)


def test_equal_scores_differ_in_nothing_and_are_within_any_margin():
    equal = np.full((2, 5, 3), 0.4)
    equal[:, :, 2] = np.linspace(0.3, 0.4, 5)
    equal[:, :, 0] += 1e-15
    of = pair_test(spreads(np.stack([equal[0], equal[0]])), FIRST, SECOND)
    assert two_sided(of) == [1.0]
    fixed = np.repeat(equal[:, :, :1], 3, axis=2) + np.array([-1e-13, 0, 1e-13])
    of = pair_test(spreads(fixed), FIRST, SECOND)
    assert (two_sided(of), outside(of, 0.001), outside(of, 0.0)) == ([1.0], [0.0], [1.0])
    assert two_sided(pair_test(spreads(fixed + np.array([0, 0.01])[:, None, None]), FIRST, SECOND)) == [0.0]


def test_copies_of_one_run_are_no_seeds_and_have_no_spread():
    """An untrained encoder scored under three seeds: against its like no test, against trained runs a constant."""
    cube = drawn(6, 20, 3)
    cube[:2] = cube[:2, :, :1]
    found = pair_test(spreads(cube), np.array([0, 0]), np.array([1, 2]))
    assert (found.n_seeds.tolist(), found.copies.tolist()) == ([1, 3], [True, False])
    assert np.isnan([found.mean[0], found.error[0], two_sided(found)[0]]).all()
    assert copies(cube).tolist() == [True, True, False, False, False, False]
    (seeds, _), own = spreads(cube).shrunk(), spreads(cube[2:]).shrunk()[0]
    np.testing.assert_allclose(seeds, [0, 0, *own])
    over = effect_over_seeds(spreads(cube[:2]), helmert(2)), over_seeds(cube[:2], helmert(2), [10, 10])
    assert [test.n_seeds for test in over] == [1, 1]


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_p_passes_exactly_where_the_interval_leaves_out_0(level):
    cube = drawn(12, 6, 3, (1, np.geomspace(0.1, 3, 12), 0.5)) + np.linspace(0, 6, 12)[:, None, None]
    found = pair_test(spreads(cube), *np.triu_indices(12, k=1))
    passes = two_sided(found) <= 1 - level
    assert (passes == (np.abs(found.mean) > reach(found, level))).all()
    assert 0 < passes.sum() < len(passes)


WORLDS = {
    "alike": np.full(7, 0.0044),
    "one four times as noisy": np.array([0.018] + [0.0044] * 6),
    "own": np.geomspace(0.002, 0.012, 7),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("seeds", [3, 5])
def test_level_of_families(seeds, world):
    """Seven equal designs, 56 tasks, 500 sets, standard error .010: any of the six with one, and any of all 21."""
    rng = np.random.default_rng(seeds)
    first, second = np.triu_indices(7, k=1)
    of_seeds = WORLDS[world][:, None, None] * rng.normal(size=(500, 7, 1, seeds))
    noise = 0.017 * rng.normal(size=(500, 7, 56, 1)) + 0.009 * rng.normal(size=(500, 7, 56, seeds))
    cubes = noise + of_seeds
    p = two_sided(pair_test(spreads(cubes), first, second))
    for family in (first == 0, first >= 0):
        assert (p[:, family].min(axis=1) * family.sum() <= 0.05).mean() <= 0.05 + 0.03
