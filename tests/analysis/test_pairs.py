"""The pairs table: direction, families, and rows that cannot pass."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.questions.compared_pairs import compare_pairs, corrected
from analysis.settings import Settings
from analysis.statistics.correction import holm
from analysis.statistics.wilcoxon import signed_rank

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
        assert row.difference == pytest.approx((m.loc[tasks, row.second] - m.loc[tasks, row.first]).mean())
        assert row.w_plus + row.w_minus == len(tasks) * (len(tasks) + 1) / 2
        assert row.n_pairs == len(tasks)


def test_families():
    by_type = compare_pairs(matrix(), BLOCKS, settings())
    for _, rows in by_type.groupby("type"):
        np.testing.assert_allclose(rows["p_adjusted"], holm(rows["p"].to_numpy()))
        assert set(rows["family_size"]) == {3}
    table = compare_pairs(matrix(), BLOCKS, settings(family="table"))
    np.testing.assert_allclose(table["p_adjusted"], holm(table["p"].to_numpy()))
    assert set(table["family_size"]) == {6}
    plain = compare_pairs(matrix(), BLOCKS, settings(correction="none"))
    np.testing.assert_array_equal(plain["p_adjusted"], plain["p"])


def test_against_keeps_the_pairs_of_one_design_and_their_direction():
    every, held = compare_pairs(matrix(), BLOCKS, settings()), compare_pairs(matrix(), BLOCKS, settings(), control="b")
    assert list(zip(held["first"], held["second"], strict=True)) == [("a", "b"), ("b", "c")] * 2
    assert set(held["family_size"]) == {2}
    merged = held.merge(every, on=["type", "first", "second"])
    np.testing.assert_array_equal(merged["p_x"], merged["p_y"])
    np.testing.assert_array_equal(merged["difference_x"], merged["difference_y"])


def test_unreachable_rows_are_marked():
    pairs = compare_pairs(matrix(designs="abcdefgh"), BLOCKS, settings())  # 28 pairs; 28 x 2/2^9 = .109
    reach = pairs.groupby("type")["reachable"].unique().map(list).to_dict()
    assert reach == {"Reranking": ["no"], "STS": ["uncorrected"]}
    assert not pairs["significant"].any()
    few = compare_pairs(matrix(), BLOCKS, settings())
    assert few[few["type"] == "STS"]["reachable"].unique().tolist() == ["yes"]


@pytest.mark.parametrize(("correction", "floor"), [("holm", 0.375), ("bh", 0.125)])  # 3 x 2/2^4; 2/2^4
def test_no_scores_at_all_go_below_the_floor(correction, floor):
    """Every sign pattern of three pairs over four tasks, up to a turn of all: no p is below the promised least."""
    lowest = np.ones(3)
    for signs in product([1], *[[-1, 1]] * 7):
        b, c = np.array(signs[:4]) * [0.01, 0.02, 0.03, 0.04], np.array(signs[4:]) * [0.2, 0.21, 0.22, 0.23]
        test = signed_rank(np.array([b, c, c - b]))
        tests = pd.DataFrame({"type": "STS", "p": test.p, "p_min": test.p_min})
        found = corrected(tests, settings(correction=correction))
        assert (found["p_adjusted"] >= found["p_min_adjusted"]).all()
        lowest = np.minimum(lowest, found["p_adjusted"])
    assert lowest.tolist() == [floor] * 3 == found["p_min_adjusted"].tolist()  # and it is attained


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_both_corrections_are_always_there_and_the_key_decides(correction):
    pairs = compare_pairs(matrix(), BLOCKS, settings(correction=correction, alpha=0.4))
    for _, rows in pairs.groupby("type"):
        np.testing.assert_allclose(rows["p_holm"], multipletests(rows["p"], method="holm")[1], atol=1e-15)
        np.testing.assert_allclose(rows["p_bh"], multipletests(rows["p"], method="fdr_bh")[1], atol=1e-15)
    decides = {"holm": "p_holm", "bh": "p_bh", "none": "p"}[correction]
    np.testing.assert_array_equal(pairs["p_adjusted"], pairs[decides])
    np.testing.assert_array_equal(pairs["significant"], pairs[decides] <= 0.4)


def test_the_sizes_of_a_pair_are_its_own():
    m = matrix()
    pairs = compare_pairs(m, BLOCKS, settings(alpha=0.1))
    row = pairs.iloc[4]  # a with c on STS
    d = (m.loc[BLOCKS["STS"], "c"] - m.loc[BLOCKS["STS"], "a"]).to_numpy()
    assert row["d_z"] == pytest.approx(d.mean() / d.std(ddof=1))
    assert row["hl_low"] <= row["hodges_lehmann"] <= row["hl_high"]
    assert row["hl_confidence"] >= 0.9
    student = stats.ttest_1samp(d, 0).confidence_interval(0.9)
    assert (row["mean_low"], row["mean_high"]) == pytest.approx((student.low, student.high))


def test_zeros_lower_what_can_be_reached():
    m = pd.DataFrame({"a": [0.5] * 9, "b": [0.5] * 6 + [0.6, 0.7, 0.8]}, index=BLOCKS["STS"])
    row = compare_pairs(m, {"STS": BLOCKS["STS"]}, settings()).iloc[0]
    assert (row["n_zero"], row["p_min"], row["reachable"]) == (6, 0.25, "no")
