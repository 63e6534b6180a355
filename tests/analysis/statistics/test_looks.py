"""Tests made again as seeds are added: p over all looks against other simulations, and the level of the rule."""

import json

import numpy as np
import pytest
from scipy import stats

from analysis.grids.formats import signed
from analysis.looks import Looks
from analysis.statistics.looks import _smallest, boundary, over_looks, p_of_look, planned
from analysis.statistics.seeds import over_tasks_and_seeds, two_sided
from benchmarks.calibrate.looks_level import decided, drawn
from benchmarks.calibrate.seed_coverage import PARTS

LOOKS = (3, 6, 10)


def differences(spread, pairs, tasks=40, seeds=10, draw=0):
    rng = np.random.default_rng(draw)
    shapes = ((pairs, tasks, 1), (pairs, 1, seeds), (pairs, tasks, seeds))
    return sum(sd * rng.normal(size=shape) for sd, shape in zip(spread, shapes, strict=True))


def against_zero(of, seeds):
    """Return the cube of `pairs` designs of zeros and of the differences, and the places of both."""
    cube = np.concatenate([np.zeros_like(of), of])[..., :seeds]
    return cube, np.arange(len(of)), len(of) + np.arange(len(of))


def test_each_look_has_twice_the_seeds_up_to_the_most():
    assert [planned(most) for most in (3, 4, 10, 12, 20)] == [(3,), (3, 4), (3, 6, 10), (3, 6, 12), (3, 6, 12, 20)]


def test_the_smallest_p_is_that_of_student_s_test_by_scipy_where_seeds_alone_decide():
    series = np.random.default_rng(5).normal(size=(40_000, 10))
    p = np.stack([stats.ttest_1samp(series[:, :n], 0, axis=1).pvalue for n in LOOKS])
    smallest = np.minimum.reduce([p[0] / 0.001, *p[1:]])
    for share in (0.01, 0.05, 0.2, 0.5):
        found = np.quantile(_smallest(LOOKS)[0], share)
        assert (smallest <= found).mean() == pytest.approx(share, abs=4 * np.sqrt(share / len(series)))


def test_p_over_looks_passes_exactly_up_to_the_boundary():
    for alpha in (0.05, 0.05 / 6):
        for seeds in LOOKS:
            ends = boundary(alpha, seeds, LOOKS) * np.array([0.99, 1.02])
            assert (over_looks(ends, seeds, LOOKS) <= alpha).tolist() == [True, False]
    assert boundary(0.05, 3, LOOKS) == pytest.approx(boundary(0.05, 6, LOOKS) / 1000)
    assert (np.diff(over_looks(np.geomspace(1e-9, 1, 50), 6, LOOKS)) >= 0).all()
    assert over_looks(np.array([1.0]), 6, LOOKS)[0] > 0.99


@pytest.mark.parametrize("spread", [(0.02, 0, 0.01), (0.02, 0.01, 0.01), (0.01, 0.01, 0), (0.005, 0.01, 0.005)])
def test_over_all_looks_at_most_alpha_is_told_and_equivalent_at_the_margin(spread):
    """Whole tables of tasks and seeds, of which the rule's own simulation has neither."""
    of, margin = differences(spread, 3000), 0.005
    told, within = np.zeros(len(of), dtype=bool), np.zeros(len(of), dtype=bool)
    for seeds in LOOKS:
        told |= over_looks(p_of_look(*against_zero(of, seeds), margin)["p_seeds"], seeds, LOOKS) <= 0.05
        found = p_of_look(*against_zero(of + margin, seeds), margin)
        within |= over_looks(found["within_seeds"], seeds, LOOKS) <= 0.05
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(of))
    assert told.mean() < most
    assert within.mean() < most


def test_the_same_p_tested_at_each_look_without_a_correction_is_wrong_more_often():
    of = differences((0.005, 0.01, 0.005), 3000)
    told = [two_sided(over_tasks_and_seeds(*against_zero(of, seeds), alone=True)) <= 0.05 for seeds in LOOKS]
    assert np.logical_or.reduce(told).mean() > 0.1


def test_p_of_a_look_is_that_of_scipy():
    of = differences((0.02, 0.003, 0.01), 6, tasks=12)
    found = p_of_look(*against_zero(of, 6), 0.005)
    means = of[..., :6].mean(axis=2)
    exact = [stats.wilcoxon(row, method="exact").pvalue for row in means]
    alike = [np.sign(stats.rankdata(abs(row)) @ np.sign(row)) == np.sign(row.mean()) for row in means]
    np.testing.assert_allclose(found["p_tasks"], np.where(alike, exact, 1.0))
    ends = [stats.wilcoxon(row + 0.005, alternative="greater", method="exact").pvalue for row in means]
    others = [stats.wilcoxon(row - 0.005, alternative="less", method="exact").pvalue for row in means]
    np.testing.assert_allclose(found["within_tasks"], np.maximum(ends, others))
    by_seed = np.random.default_rng(2).normal(0.1, 1, (5, 1, 6)).repeat(12, axis=1)  # all tasks alike
    found = p_of_look(*against_zero(by_seed, 6), 2.0)
    np.testing.assert_allclose(found["p_seeds"], stats.ttest_1samp(by_seed[:, 0], 0, axis=1).pvalue)
    ends = stats.ttest_1samp(by_seed[:, 0], -2, axis=1, alternative="greater").pvalue
    others = stats.ttest_1samp(by_seed[:, 0], 2, axis=1, alternative="less").pvalue
    np.testing.assert_allclose(found["within_seeds"], np.maximum(ends, others))


def test_a_decided_pair_is_tested_no_more_and_the_calibration_decides_as_the_study_does():
    """Look by look on the open designs alone, and all sets at once."""
    rng = np.random.default_rng(9)
    scores = drawn(PARTS["normal"], (12, 5, 20), (0.01, 0.004, 0.004), rng)
    scores += np.array([0, 0, 0.01, 0.02, 0.05])[:, None, None]
    scores[:6, 1] = scores[:6, 0] + rng.normal(0, 0.001, scores[:6, 0].shape)
    told, same, used = decided(scores, LOOKS)
    for k, of_set in enumerate(scores):
        found, asked = Looks(["first", "a", "b", "c", "d"], 10), []
        for seeds in LOOKS:
            asked += [(name, seeds) for name in found.open]
            places = [0, *("abcd".index(name) + 1 for name in found.open)]
            if len(places) > 1:
                found.look(of_set[places][..., :seeds])
        outcomes = found.pairs["outcome"].to_numpy()
        assert (outcomes == np.where(told[k], "told apart", np.where(same[k], "equivalent", "not told"))).all()
        assert list(map(tuple, found.table[["second", "seeds"]].to_numpy())) == asked
        assert found.table.groupby("second")["seeds"].max().tolist() == used[k].tolist()
    assert told.any()
    assert same.any()
    assert (~told & ~same).any()
    assert set(used.ravel()) == {3, 6, 10}


def test_copies_of_one_run_and_one_task_are_told_by_no_look(tmp_path):
    """What p of other seeds is not known counts as 1, and the files hold no number that is none."""
    rng = np.random.default_rng(10)
    copied = rng.normal(0.4, 0.05, (2, 20, 1)).repeat(3, axis=2)
    for scores in (copied, rng.normal(0.4, 0.05, (2, 1, 3))):
        looks = Looks(["first", "a"], 3)
        said = looks.look(scores)
        difference = scores[1].mean() - scores[0].mean()
        assert said == f"Look at 3 seeds, against first: not told a ({signed(difference)})."
        assert looks.pairs["outcome"].tolist() == ["not told"]
        facts = json.loads(looks.write(tmp_path)[1].read_text())
        assert facts["tests"][0]["p_looks"] == facts["tests"][0]["p_seeds"] == 1
