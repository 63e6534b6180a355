"""The verdict: which differences are significant, the closest one, what it rests on, equivalence."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from analysis.formats import p_is
from analysis.statistics.seeds import pair_test, spreads, two_sided
from analysis.tables import power, sensitivity
from analysis.tables.compared_pairs import BOTH
from analysis.tables.pairs import pair_table
from analysis.verdict import verdict
from tests.analysis.three_seeds import compared

STUDIES = 100
DESIGNS, TASKS = ["control", "a", "b", "c", "d"], [f"t{k:02}" for k in range(40)]


def of_study(scores, control="control", **changes):
    """scores [designs, tasks, seeds] as the sections read them."""
    count, tasks, _ = scores.shape
    return compared(scores, DESIGNS[:count], {"STS": TASKS[:tasks]}, control, **changes)


def study(rng, lift=0.0):
    """Designs that differ by tasks and seeds alone, and by `lift` over the control."""
    parts = ((0.02, (5, 40, 1)), (0.003, (5, 1, 3)), (0.01, (5, 40, 3)))
    noise = sum(sd * rng.normal(size=shape) for sd, shape in parts)
    return rng.normal(0.5, 0.1, (1, 40, 1)) + noise + np.array([0, *[lift] * 4])[:, None, None]


@pytest.mark.parametrize("lift", [0.0, 0.02])
def test_any_of_four_is_significant_in_five_per_cent_of_studies_at_most(lift):
    """Bound: what a true rate of 5 % exceeds in one of a hundred suites. The best of the four is among them."""
    rng, found = np.random.default_rng(3), 0
    for _ in range(STUDIES if lift == 0 else 20):
        pairs = of_study(study(rng, lift)).pairs
        assert pairs["family_size"].tolist() == [4] * 4
        found += (pairs["significant"] == BOTH).any()
    if lift == 0:
        assert found <= binom.ppf(0.99, STUDIES, 0.05)
    else:
        assert found > 15, "a rule that never finds a difference would hold its level too"


@pytest.mark.parametrize("lift", [0.0, 0.03])
def test_it_names_what_is_significant_else_the_closest(lift):
    of = of_study(study(np.random.default_rng(1), lift))
    said, unit = verdict(of), of.unit
    found = of.pairs[of.pairs["significant"] == BOTH]
    assert (len(found) > 0) == (lift > 0)
    for row in (found if lift else of.pairs.nsmallest(1, "p")).to_dict("records"):
        ends = f"{unit.signed(row['mean_difference'])} points {unit.interval(row['low'], row['high'])}"
        assert f"{row['second']}, {ends}, {p_is(row['p'])}" in said
    head = "No design differs significantly" if lift == 0 else f"{len(found)} of 4 designs differ significantly"
    assert said.startswith(f"{head} from control (Holm, 4 pairs)")
    power = unit.score(of.pairs["detectable"].median())
    assert f"ith 3 seeds 80 % of studies find a difference of {power} points (median pair)." in said


def test_without_seeds_it_speaks_of_checkpoints(monkeypatch):
    monkeypatch.setattr(sensitivity, "source_of", lambda task: task[:2])  # four sources of ten tasks
    scores = study(np.random.default_rng(1), 0.03)[:, :, :1]
    said = verdict(of_study(scores))
    assert "by Wilcoxon over tasks" in said
    assert "It speaks of these checkpoints only" in said
    assert "studies find" not in said
    assert sensitivity.section(of_study(scores)) is None, "nothing over seeds is tested, so nothing is said of it"
    assert "copies of one run" in verdict(of_study(np.repeat(scores, 3, axis=2)))
    assert "nothing to test" in verdict(of_study(np.full((2, 40, 3), 0.5)))


def test_the_task_that_carries_a_difference_is_named():
    scores = np.random.default_rng(5).normal(0.5, 0.002, (2, 9, 3))
    scores[1] += np.array([0.03, 0.02, 0.02, 0.01, 0.01, 0.02, 0.015, -0.012, 0.01])[:, None]
    of = of_study(scores)
    assert of.pairs["significant"].tolist() == [BOTH]
    p = [two_sided(pair_test(spreads(np.delete(scores, k, 1)), *np.array([[0], [1]])))[0] for k in range(9)]
    note = sensitivity.section(of).notes[-1]
    assert f"without {TASKS[int(np.argmax(p))]}, {p_is(max(p))}" in note


@pytest.mark.parametrize(("shift", "within"), [(0.0, "yes"), (0.0085, "-")])
def test_equivalence_is_a_column(shift, within):
    rng = np.random.default_rng(6)
    spread = rng.normal(0, 0.006 if not shift else 0.04, (40, 1))
    of = of_study(0.5 + rng.normal(0, 1e-3, (2, 40, 3)) + np.stack([0 * spread, spread - spread.mean() + shift]))
    assert pair_table(of).frame["Within 1 point"].tolist() == [within]
    assert of.pairs["equivalent"].tolist() == [within == "yes"]


def test_the_table_of_detectable_differences_is_that_of_the_pairs_at_their_seeds():
    of = of_study(study(np.random.default_rng(7)))
    table = power.power_table(of).set_index("seeds")
    assert table.loc[3, "median"] == pytest.approx(of.pairs["detectable"].median())
    assert table["median"].is_monotonic_decreasing
    assert power.section(of_study(study(np.random.default_rng(7))[:, :, :2])) is None


def test_a_design_with_one_run_leaves_the_detectable_differences_of_the_others():
    of = of_study(study(np.random.default_rng(7)))
    one_run = of.frame[(of.frame["design"] != "d") | (of.frame["seed"] == of.frame["seed"].iloc[0])]
    assert np.isfinite(power.power_table(replace(of, frame=one_run))["median"]).all()
