"""The pairs table: direction, families, what is significant, equivalent and detectable."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.settings import Settings
from analysis.statistics.correction import holm
from analysis.statistics.power import components, detectable
from analysis.statistics.seeds import FEWEST_TASKS, pair_test, spreads, two_sided
from analysis.tables.compared_pairs import BOTH, NO, TASKS_ONLY, TESTED, compare_pairs, from_design, without_one_task
from tests.analysis.three_seeds import by_seed, long_frame

BLOCKS = {"Reranking": ["r0", "r1", "r2"], "STS": [f"s{k}" for k in range(9)]}
TASKS = [task for tasks in BLOCKS.values() for task in tasks]


def settings(**changes):
    return Settings(scores=(), **changes)


def matrix(seed=0, designs="abc"):
    values = np.random.default_rng(seed).uniform(0.2, 0.8, size=(len(TASKS), len(designs)))
    return pd.DataFrame(values, index=TASKS, columns=list(designs))


def test_difference_is_second_minus_first_in_the_order_of_the_columns():
    m = matrix()
    pairs = compare_pairs(m[["c", "a", "b"]], {**BLOCKS, "All": TASKS}, settings())
    assert list(zip(pairs["first"], pairs["second"], strict=True))[:3] == [("c", "a"), ("c", "b"), ("a", "b")]
    for row in pairs.itertuples():
        tasks = TASKS if row.type == "All" else BLOCKS[row.type]
        assert row.mean_difference == pytest.approx((m.loc[tasks, row.second] - m.loc[tasks, row.first]).mean())
        assert row.w_plus + row.w_minus == len(tasks) * (len(tasks) + 1) / 2
        assert row.n_tasks == len(tasks)


def test_against_keeps_the_pairs_of_one_design_which_is_the_first_of_each():
    every, held = compare_pairs(matrix(), BLOCKS, settings()), compare_pairs(matrix(), BLOCKS, settings(), control="b")
    assert list(zip(held["first"], held["second"], strict=True)) == [("b", "a"), ("b", "c")] * 2
    assert held["family_size"].tolist() == [2] * 4
    turned = from_design(every, "b")
    for name in ("type", "first", "second", "p_wilcoxon"):
        assert held[name].tolist() == turned[name].tolist()
    np.testing.assert_allclose(held[["mean_difference", "low", "high"]], turned[["mean_difference", "low", "high"]])


def seeded(lift=0.0, seeds=3, draw=0):
    """A long frame of designs a, b, c whose runs vary with the seed, c `lift` above the others; its matrix and cube."""
    rng = np.random.default_rng(draw)
    noise = sum(
        sd * rng.normal(size=(3, *size)) for sd, size in ((0.01, (12, 1)), (0.003, (1, seeds)), (0.004, (12, seeds)))
    )
    cube = 0.5 + noise + np.array([0, 0, lift])[:, None, None]
    frame = long_frame(cube, list("abc"), TASKS)
    return frame, frame.pivot_table(index="task", columns="design", values="score").loc[TASKS], cube


@pytest.mark.parametrize("lift", [0.0, 0.03])
def test_what_is_detectable_is_of_the_family_and_a_lift_is_found(lift):
    frame, table, cube = seeded(lift)
    pairs = compare_pairs(table, {**BLOCKS, "All": TASKS}, settings(), frame=frame)
    assert list(pairs)[: len(TESTED) + 1] == [*TESTED, "significant"]
    for kind, rows in pairs.groupby("type"):
        of = spreads(cube[:, [TASKS.index(task) for task in BLOCKS.get(kind, TASKS)]])
        parts, family = components(of, np.array([0, 0, 1]), np.array([1, 2, 2])), 3 if kind == "All" else 6
        tested = len(BLOCKS.get(kind, TASKS)) >= FEWEST_TASKS
        assert rows["p"].notna().tolist() == [tested] * 3
        found = detectable(parts, 0.05 / family, (3, 3)) if tested else [np.nan] * 3
        np.testing.assert_allclose(rows["detectable"], found)
        assert set(rows["family_size"]) == {family}
    assert (BOTH in set(pairs["significant"])) == (lift > 0)


@pytest.mark.parametrize("seeds", [0, 1, 2])
def test_with_fewer_than_three_seeds_it_is_over_tasks_only(seeds):
    _, table, _ = seeded(0.05)
    frame = long_frame(by_seed(table.to_numpy().T, seeds), list("abc"), TASKS) if seeds else None
    pairs = compare_pairs(table, {"STS": TASKS}, settings(), frame=frame)
    assert pairs[["p", "p_holm", "p_equivalent", "detectable"]].isna().all(axis=None)
    assert pairs["significant"].tolist() == [NO, TASKS_ONLY, TASKS_ONLY]
    assert not pairs["equivalent"].any()
    student = stats.ttest_1samp(table["c"] - table["a"], 0).confidence_interval(0.95)
    assert tuple(pairs[["low", "high"]].iloc[1]) == pytest.approx(tuple(student))


def test_the_task_that_carries_most_is_found():
    frame, table, cube = seeded(0.02)
    found = without_one_task(table, frame)
    places = np.array([0, 0, 1]), np.array([1, 2, 2])
    p = [holm(two_sided(pair_test(spreads(np.delete(cube, task, axis=1)), *places))) for task in range(12)]
    np.testing.assert_allclose(found["p_holm"], np.max(p, axis=0), rtol=1e-9)
    assert found["task"].tolist() == [TASKS[k] for k in np.argmax(p, axis=0)]
