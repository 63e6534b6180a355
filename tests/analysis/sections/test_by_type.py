"""Designs by type of task: the rows, and the test that they differ by type."""

import numpy as np
import pytest

from analysis.statistics.correction import holm
from analysis.tables import design_by_type
from analysis.tables.compared_pairs import from_design
from tests.analysis.three_seeds import by_seed, compared

KINDS = ("STS", "Retrieval", "Classification")


def of_kinds(scores, designs, kinds=KINDS, control="", **changes):
    """As `compared`, the tasks of the kinds in equal parts."""
    per = scores.shape[1] // len(kinds)
    return compared(scores, designs, {kind: [f"{kind}{k}" for k in range(per)] for kind in kinds}, control, **changes)


def noise(seed, designs, tasks=24, sd=0.01):
    rng = np.random.default_rng(seed)
    return rng.normal(0.5, 0.1, tasks) + rng.normal(0, sd, (designs, tasks))


def test_the_rows_are_the_pairs_of_the_types_turned_to_the_reference():
    of = of_kinds(by_seed(noise(0, 4), 3), "abcd", control="b")
    section = design_by_type.section(of)
    rows = of.pairs[of.pairs["type"] != "All"]
    np.testing.assert_allclose(rows["p_holm"], holm(rows["p"].to_numpy()))
    (table,) = section.tables
    assert table.frame["Design"].tolist() == ["a", "c", "d"]
    sts = rows[rows["type"] == "STS"].set_index("second")["mean_difference"]
    shown = [float(text.strip("*\N{DAGGER}")) for text in table.frame["STS (8)"]]
    assert shown == pytest.approx((100 * sts[["a", "c", "d"]]).tolist(), abs=0.051)
    assert [drawn.name for drawn in section.draw()] == ["design_by_type"]


def test_pairs_are_turned_with_their_intervals():
    of = of_kinds(by_seed(noise(0, 3), 3), "abc")
    turned, pair = from_design(of.main_pairs, "b").iloc[0], of.main_pairs.iloc[0]
    assert (pair["first"], pair["second"], turned["first"], turned["second"]) == ("a", "b", "b", "a")
    assert (turned["low"], turned["mean_difference"], turned["high"]) == (
        -pair["high"], -pair["mean_difference"], -pair["low"]
    )  # fmt: skip


@pytest.mark.parametrize("seeds", [1, 3])
def test_designs_that_differ_by_type_are_found_where_there_are_seeds(seeds):
    scores = by_seed(noise(9, 2, tasks=16), seeds)
    scores[1, :8] += 0.05
    (found,) = [design_by_type.section(of_kinds(scores, ["a-causal", "b-causal"], kinds=KINDS[:2]))]
    (test,) = found.frames["design_by_type"].to_dict("records")
    assert test["p_permutation"] <= 0.05
    assert ("differences between designs depend on" in found.notes[0]) == (seeds == 3)
    assert np.isnan(test["p"]) == (seeds == 1)
