"""Designs by type of task: what is corrected together, the best of each type against scipy, the published claim."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t, wilcoxon

from analysis.manifests.designs import Design
from analysis.questions import best_by_type, design_by_type
from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.question import Material
from analysis.settings import Settings
from analysis.statistics.correction import holm
from analysis.verdict import verdict
from tests.analysis.three_seeds import by_seed, long_frame

KINDS = ("STS", "Retrieval", "Classification")
FIVE = ("eos-causal", "lastlayer-causal", "multilayer-causal", "lastlayer-bi", "multilayer-bi")


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


def planted():
    """Of five designs one is far ahead on STS, another on Classification; on Retrieval two are alike."""
    scores = noise(1, 5)
    scores[4, :8] += 0.1
    scores[4, 8:16] += 0.1
    scores[3, 8:16] = scores[4, 8:16] + np.array([11, -13, 17, -19, 23, -29, 31, -37]) / 20_000
    scores[0, 16:] += 0.1
    return scores


def test_the_best_of_a_type_beats_each_of_the_others():
    of = material(by_seed(planted(), 3), FIVE)
    best = best_by_type.answer(of).frames["best_by_type"]
    largest, matrix = [], of.matrix
    for kind, design in zip(best["type"], best["design"], strict=True):
        scores = matrix.loc[of.types[kind]]
        assert design == scores.mean().idxmax()
        others = [name for name in FIVE if name != design]
        largest.append(max(wilcoxon(scores[design] - scores[name], method="exact").pvalue for name in others))
    np.testing.assert_allclose(best["p"], largest)
    np.testing.assert_allclose(best["p_adjusted"], holm(np.array(largest)))
    assert best["told"].tolist() == [True, False, True]
    (rival,) = {"lastlayer-bi", "multilayer-bi"} - {best["design"][1]}
    assert best["not_behind"].tolist() == ["", rival, ""]


@pytest.mark.parametrize("control", ["", "eos-causal"])
def test_the_published_claim_is_judged_from_the_factors(control):
    of = material(by_seed(planted(), 3), FIVE, control=control)
    (note,) = best_by_type.answer(of).notes
    assert "multilayer-bi on STS: told;" in note
    assert "multilayer-bi on Retrieval: not told" in note
    assert "eos-causal on Classification: told;" in note
    assert "eos-causal on Clustering: not scored on two tasks or more." in note
    text = verdict(of, [design_by_type.answer(of), best_by_type.answer(of)])
    assert "The differences between designs are told to depend on the type of task" in text
    assert "Told the best of a type: multilayer-bi on STS, eos-causal on Classification." in text
    others = material(by_seed(planted()[:4], 3), FIVE[:4])
    assert best_by_type.answer(others).notes == []


def test_the_claim_is_corrected_over_its_own_types_and_what_cannot_be_told_is_so_said():
    """Seven types of eight tasks: 7 x .0078 is above .05, 4 x .0078 is not."""
    kinds = (*KINDS, "Clustering", "Reranking", "PairClassification", "Summarization")
    scores = np.concatenate([planted(), noise(7, 5, tasks=32)], axis=1)
    of = material(by_seed(scores, 3), FIVE, kinds=kinds)
    answer = best_by_type.answer(of)
    assert (answer.frames["best_by_type"]["reachable"] == "uncorrected").all()
    assert set(answer.about.values()) == {
        "None can be told the best of a type: so few tasks allow no p below .0547 over the 7 types."
    }
    (note,) = answer.notes
    assert "multilayer-bi on STS: told;" in note
    assert "after Holm over the 4 types that it names" in note


def test_one_seed_makes_no_claim_and_one_type_has_no_table():
    of = material(by_seed(planted(), 1), FIVE)
    design, best = design_by_type.answer(of), best_by_type.answer(of)
    assert "no claim about designs" in design.about["eos-causal", "multilayer-bi"]
    assert not best.frames["best_by_type"]["told"].any()
    assert all("no claim about designs" in part or "not scored" in part for part in best.notes[0].split(";"))
    assert all(cell.mark == "" for grid in (*design.grids, *best.grids) for row in grid.rows for cell in row)
    single = material(by_seed(planted(), 3), FIVE, kinds=("STS",))
    assert design_by_type.answer(single) is None
    assert best_by_type.answer(single) is None


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


def test_copies_of_one_run_are_one_seed():
    """Three seeds of encoders that nothing trained; one that differs makes three of them."""
    scores = planted()[:, :, None].repeat(3, axis=2)
    of = material(scores, FIVE)
    test = design_by_type.answer(of).facts["design_by_type"]
    assert (test["n_seeds"], test["told"]) == (1, False)
    assert "no claim about designs" in design_by_type.answer(of).about["eos-causal", "multilayer-bi"]
    scores[0, 0, 0] += 1e-6
    assert design_by_type.answer(material(scores, FIVE)).facts["design_by_type"]["told"]


def test_many_designs_are_compared_by_their_highest():
    scores = noise(2, 15) + np.linspace(0, 0.1, 15)[:, None]
    of = material(scores[:, :, None], [f"d{k:02}" for k in range(15)], control="d00")
    answer = design_by_type.answer(of)
    assert set(answer.frames["simple_effects"]["second"]) == {f"d{k:02}" for k in range(4, 15)}
    assert "Of 15 designs the 12 of the highest mean and d00 are compared." in answer.grids[0].caption
    assert answer.facts["design_by_type"]["n_designs"] == 12


def test_two_designs_that_are_alike_are_seldom_told_the_best():
    """Two types, two designs alike and far ahead of a third: whoever is highest by chance is told in 5 % at most."""
    rng, rounds, false = np.random.default_rng(6), 100, 0
    types = {kind: [f"{kind}{k}" for k in range(8)] for kind in KINDS[:2]}
    tasks, settings = [*types["STS"], *types["Retrieval"]], Settings(scores=(), family="table")
    for _ in range(rounds):
        scores = rng.normal(0, 0.02, (3, 16, 1)) + rng.normal(0, 0.003, (3, 1, 3)) + rng.normal(0, 0.01, (3, 16, 3))
        scores[2] -= 1
        matrix = pd.DataFrame(scores.mean(axis=2).T, index=tasks, columns=list("abc"))
        pairs = compare_pairs(matrix, types, settings, frame=long_frame(scores, list("abc"), tasks))
        false += best_by_type.best_by_type(pairs, matrix, types, settings)["told"].any()
    assert false / rounds <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds)
