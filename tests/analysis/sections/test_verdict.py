"""The verdict: who is ahead, what keeps its level, the tasks that carry a difference, equivalence."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp, wilcoxon

from analysis.grids.formats import fraction
from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.equivalence import answer as equivalence
from analysis.statistics.correction import holm
from analysis.verdict import verdict
from tests.analysis.sections.test_seeds import DESIGNS, TASKS, material
from tests.analysis.three_seeds import long_frame

STUDIES = 100


def study(rng, lift=0.0):
    """Designs that differ by tasks and seeds alone, and by `lift` over the control; a seed counts for all designs."""
    parts = ((0.02, (5, 40, 1)), (0.003, (5, 1, 3)), (0.01, (5, 40, 3)))
    noise = sum(sd * rng.normal(size=shape) for sd, shape in parts)
    shared = rng.normal(0.5, 0.1, (1, 40, 1)) + rng.normal(0, 0.01, (1, 1, 3))
    return shared + noise + np.array([0, *[lift] * 4])[:, None, None]


@pytest.mark.parametrize("lift", [0.0, 0.02])
def test_any_of_four_is_told_in_five_per_cent_of_studies_at_most(lift):
    """Bound: what a true rate of 5 % exceeds in one of a hundred suites. The best of the four is among them."""
    rng, told = np.random.default_rng(3), 0
    for _ in range(STUDIES if lift == 0 else 20):
        pairs = material(study(rng, lift)).pairs
        assert pairs["family_size"].tolist() == [4] * 4
        told += pairs["told"].any()
    if lift == 0:
        assert told <= binom.ppf(0.99, STUDIES, 0.05)
    else:
        assert told > 15, "a rule that never tells would hold its level too"


@pytest.mark.parametrize(("words", "m"), [({}, 4), ({"correction": "none"}, 1)])
def test_the_p_of_the_verdict_is_that_of_the_family(words, m):
    """By hand, where only tasks vary, so that the model is Student's test over tasks."""
    scores = np.repeat(0.5 + 0.02 * np.random.default_rng(1).normal(size=(5, 40, 1)), 3, axis=2)
    scores[2] += 0.013
    scores += [-0.01, 0.0, 0.01]  # what a seed does to all designs, and no difference holds
    whole = material(scores, **words)
    d = scores[1:, :, 0] - scores[0, :, 0]
    over_tasks = np.array([wilcoxon(row, method="exact").pvalue for row in d])
    over_seeds = ttest_1samp(d, 0, axis=1).pvalue
    if m == 4:
        over_tasks, over_seeds = holm(over_tasks), holm(over_seeds)
    np.testing.assert_allclose(whole.pairs["p_adjusted"], over_tasks, rtol=1e-9)
    np.testing.assert_allclose(whole.pairs["p_seeds_adjusted"], over_seeds, rtol=1e-9)
    np.testing.assert_array_equal(whole.pairs["told"], np.maximum(over_tasks, over_seeds) <= 0.05)
    said = verdict(whole)
    assert "b has the highest mean of 5 designs" in said
    assert f"p = {fraction(over_tasks[1])} over tasks and p = {fraction(over_seeds[1])} over tasks and 3 seeds" in said
    assert "told of" not in verdict(material(scores[:, :, :1], **words))


def test_copies_of_one_run_make_no_claim_and_are_called_so():
    scores = np.repeat(study(np.random.default_rng(2), 0.02)[:, :, :1], 3, axis=2)
    assert "copies of one run" in verdict(material(scores))
    scores[:, 0, 0] += 1e-6
    assert "copies" not in verdict(material(scores))


def test_tests_that_pass_on_opposite_sides_are_said_to():
    """Over three common seeds a is .02 ahead of the control; three more of its own lie .3 lower."""
    rng = np.random.default_rng(4)
    scores = rng.normal(0.5, 0.02, (1, 40, 1)) + rng.normal(0, 0.002, (2, 40, 6)) + np.array([0, 0.02])[:, None, None]
    scores[1, :, 3:] -= 0.3
    frame = long_frame(scores, DESIGNS[:2], TASKS)
    frame = frame[(frame["design"] != "control") | (frame["seed"].astype(int) < 3)]
    for part, apart in ((frame, True), (frame[frame["seed"].astype(int) < 3], False)):
        of = material(scores, frame=part)
        assert of.pairs[["p_adjusted", "p_seeds_adjusted"]].to_numpy().max() <= 0.05
        assert of.pairs["told"].tolist() == [not apart]
        assert ("which see it on opposite sides" in verdict(of)) == apart


def test_the_tasks_that_carry_a_difference_are_those_without_which_it_is_not_told():
    scores = np.random.default_rng(5).normal(0.5, 0.002, (2, 9, 3)) + 0.5
    scores[1] += np.array([0.03, 0.02, 0.02, 0.01, 0.01, 0.02, 0.015, -0.012, 0.01])[:, None]
    of = material(scores)
    assert of.pairs["told"].all()
    carriers = []
    for task in of.tasks:
        rest = {"STS": [other for other in of.tasks if other != task]}
        if not compare_pairs(of.matrix, rest, of.settings, "control", of.frame)["told"].any():
            carriers.append(task)
    said = verdict(of)
    assert ("It rests on single tasks" in said) == bool(carriers)
    assert all(task in said for task in carriers[:4])


@pytest.mark.parametrize(
    ("shift", "outcome"), [(0.0, "equivalent within .005"), (0.012, "told apart"), (0.004, "not told")]
)
def test_the_outcomes_of_equivalence(shift, outcome):
    d = np.random.default_rng(6).normal(0, 0.003, (40, 3)) + np.random.default_rng(7).normal(0, 0.006, (40, 1))
    scores = 0.5 + np.stack([0 * d, d - d.mean() + shift])
    of = material(scores + np.random.default_rng(8).normal(0, 1e-5, scores.shape))
    section = equivalence(of)
    told = section.frames["equivalence"]["outcome"].tolist()
    assert told == [outcome] or (outcome == "not told" and told == ["told apart"])
    assert ("The pair is equivalent within .005" in verdict(of, [section])) == (outcome.startswith("equivalent"))
    once = equivalence(replace(of, pairs=material(scores[..., :1]).pairs))
    assert once.frames["equivalence"]["outcome"].tolist() == ["not told"]


def test_every_design_of_the_highest_mean_is_named():
    scores = np.repeat(0.5 + 0.02 * np.random.default_rng(1).normal(size=(1, 40, 1)), 5, axis=0)
    scores[4] -= 0.1
    assert verdict(material(scores)).startswith("control, a, b and c share the highest mean of 5 designs")
