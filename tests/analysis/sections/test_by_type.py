"""Designs by type of task: the rows, and the test that they differ by type."""

import numpy as np
import pandas as pd
import pytest

from analysis.manifests.designs import Design
from analysis.questions import design_by_type
from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.question import Material
from analysis.settings import Settings
from analysis.statistics.correction import holm
from tests.analysis.three_seeds import by_seed, long_frame

KINDS = ("STS", "Retrieval", "Classification")


def material(scores, designs, kinds=KINDS, control="", **changes):
    """scores [designs, tasks, seeds], the tasks of the kinds in equal parts; designs named `pooler-attn`."""
    per = scores.shape[1] // len(kinds)
    types = {kind: [f"{kind}{k}" for k in range(per)] for kind in kinds}
    tasks = [task for of_type in types.values() for task in of_type]
    frame, settings = long_frame(scores, list(designs), tasks), Settings(scores=(), **changes)
    matrix = pd.DataFrame(scores.mean(axis=2).T, index=tasks, columns=list(designs))
    blocks = {**types, "All": tasks}
    named = {name: Design(name, "", *name.partition("-")[::2]) for name in designs}
    pairs = compare_pairs(matrix, blocks, settings, control, frame)
    return Material(settings, named, control, types, blocks, frame, matrix, pairs)


def noise(seed, designs, tasks=24, sd=0.01):
    rng = np.random.default_rng(seed)
    return rng.normal(0.5, 0.1, tasks) + rng.normal(0, sd, (designs, tasks))


def test_the_rows_are_the_pairs_of_the_types_turned_to_the_reference():
    of = material(by_seed(noise(0, 4), 3), "abcd", control="b")
    answer = design_by_type.answer(of)
    rows = of.pairs[of.pairs["type"] != "All"]
    np.testing.assert_allclose(rows["p_holm"], holm(rows["p"].to_numpy()))
    turned = design_by_type.from_reference(rows, "b")
    one = turned[turned["design"] == "a"].iloc[0]
    pair = rows[rows["first"] == "a"].iloc[0]
    assert (one["low"], one["mean_difference"], one["high"]) == (-pair["high"], -pair["mean_difference"], -pair["low"])
    (grid,) = answer.grids
    assert [row[0].text for row in grid.rows] == ["a", "c", "d"]
    sts = rows[rows["type"] == "STS"].set_index(["first", "second"])["mean_difference"]
    shown = [float(row[1].text) for row in grid.rows]
    assert shown == pytest.approx([-sts["a", "b"], sts["b", "c"], sts["b", "d"]], abs=5e-5)
    assert [drawn.name for drawn in answer.drawings] == ["design_by_type"]


@pytest.mark.parametrize("seeds", [1, 3])
def test_designs_that_differ_by_type_are_found_where_there_are_seeds(seeds):
    scores = by_seed(noise(9, 2, tasks=16), seeds)
    scores[1, :8] += 0.05
    (answer,) = [design_by_type.answer(material(scores, ["a-causal", "b-causal"], kinds=KINDS[:2]))]
    (test,) = answer.frames["design_by_type"].to_dict("records")
    assert test["p_permutation"] <= 0.05
    assert ("depend on the type of task" in answer.notes[0]) == (seeds == 3)
    assert np.isnan(test["p"]) == (seeds == 1)
