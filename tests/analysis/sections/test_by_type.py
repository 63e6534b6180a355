"""Designs by type of task: what is corrected together, and when it is told."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

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


def test_simple_effects_are_the_pairs_corrected_over_all_types():
    of = material(by_seed(noise(0, 4), 3), "abcd", control="b")
    answer = design_by_type.answer(of)
    rows = of.pairs[of.pairs["type"] != "All"].reset_index(drop=True)
    simple = answer.frames["simple_effects"].reset_index(drop=True)
    assert len(simple) == 9
    np.testing.assert_allclose(simple["p_adjusted"], holm(rows["p"].to_numpy()))
    np.testing.assert_allclose(simple["p_seeds_adjusted"], holm(rows["p_seeds"].to_numpy()))
    np.testing.assert_array_equal(simple["mean"], rows["mean_seeds"])
    for ending, tail in (("", 0.025), ("_together", 0.025 / 9)):
        both = [t.isf(tail, rows[f"df_{of}"]) * rows[f"error_{of}"] for of in ("seeds", "moderated")]
        reach = np.maximum(*both)
        np.testing.assert_allclose(simple[f"high{ending}"], rows["mean_seeds"] + reach)
        np.testing.assert_allclose(simple[f"low{ending}"], rows["mean_seeds"] - reach)
    (grid,) = answer.grids
    assert [row[0].text for row in grid.rows] == ["a", "c", "d"]
    sts = rows[rows["type"] == "STS"].set_index(["first", "second"])["mean_seeds"]
    shown = [float(row[1].text) for row in grid.rows]
    assert shown == pytest.approx([-sts["a", "b"], sts["b", "c"], sts["b", "d"]], abs=5e-5)
    assert [drawn.name for drawn in answer.drawings] == ["design_by_type"]


def test_an_interaction_seen_on_opposite_sides_is_not_told():
    """Over three common seeds `b` is .05 ahead on STS alone; three more of `b` alone are .3 lower there."""
    rng, designs = np.random.default_rng(9), ["a-causal", "b-causal"]
    common = noise(9, 2, tasks=16)[:, :, None] + rng.normal(0, 0.001, (2, 16, 3))
    common[1, :8] += 0.05
    further = np.full((2, 16, 3), np.nan)
    further[1] = common[1]
    further[1, :8] -= 0.3
    for scores, told in ((common, True), (np.concatenate([common, further], axis=2), False)):
        of = material(common, designs, kinds=KINDS[:2])
        frame = long_frame(scores, designs, of.tasks).dropna()
        matrix = frame.pivot_table(index="task", columns="design", values="score").loc[of.tasks, designs]
        of = replace(of, frame=frame, matrix=matrix)
        test = design_by_type._interaction(of, designs, of.types)
        assert max(test["p"], test["p_seeds"]) <= 0.05
        assert test["told"] == told
