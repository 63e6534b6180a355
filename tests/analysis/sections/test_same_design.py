"""Runs of one design against each other: every split counted by scipy's test."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind, wilcoxon

from analysis.analyse import analyse
from analysis.questions.same_design import jackknife, same_design, splits
from analysis.settings import Settings
from tests.analysis.three_seeds import long_frame

TASKS = [f"t{k}" for k in range(12)]


def written(tmp_path, seeds):
    """A csv of designs with so many seeds each, and the scores {design: [tasks, seeds]}."""
    rng = np.random.default_rng(2)
    scores = {d: rng.normal(0.5, 0.02, (12, 1)) + rng.normal(0, 0.02, (12, n)) for d, n in seeds.items()}
    scores = {d: values + rng.normal(0, 0.02, (1, values.shape[1])) for d, values in scores.items()}
    rows = [
        {"model": d, "task": t, "type": "STS", "seed": s, "score": values[k, s]}
        for d, values in scores.items()
        for k, t in enumerate(TASKS)
        for s in range(values.shape[1])
    ]
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path, scores


def found(tmp_path, seeds):
    """The answer's table, and the scores."""
    path, scores = written(tmp_path, seeds)
    answers = {answer.name: answer for answer in analyse(Settings(scores=(path,))).answers}
    return answers.get("same_design"), scores


def rejects(one, other):
    return wilcoxon(other.mean(axis=1) - one.mean(axis=1), method="exact").pvalue <= 0.05


def test_every_split_is_counted(tmp_path):
    answer, scores = found(tmp_path, {"a": 4, "b": 2, "c": 1})
    frame = answer.frames["same_design"].set_index(["design", "side"])
    singles = {
        d: [rejects(v[:, [i]], v[:, [j]]) for i, j in combinations(range(v.shape[1]), 2)] for d, v in scores.items()
    }
    a = scores["a"]
    twos = [rejects(a[:, list(one)], a[:, list({0, 1, 2, 3} - set(one))]) for one in ((0, 1), (0, 2), (0, 3))]
    assert frame.loc[("a", 1), ["splits", "rejected"]].tolist() == [6, pytest.approx(np.mean(singles["a"]))]
    assert frame.loc[("a", 2), ["splits", "rejected"]].tolist() == [3, pytest.approx(np.mean(twos))]
    assert frame.loc[("b", 1), ["splits", "rejected"]].tolist() == [1, sum(singles["b"])]
    both = np.mean(singles["a"] + singles["b"])
    assert frame.loc[("all designs", 1), ["splits", "rejected"]].tolist() == [7, pytest.approx(both)]
    assert "c" not in frame.index.get_level_values("design")
    assert sum(singles["a"]) > 0, "a spread over seeds that nothing shows would test nothing"
    texts = [[cell.text for cell in row] for row in answer.grids[0].rows]
    assert [row[-1] for row in texts] == ["no claim"] * len(texts)


def test_with_six_runs_the_primary_test_is_tried_too():
    """The tasks of a design are the same, so without a rest the test over seeds is Welch's over the seeds' means."""
    seeds = np.array([0, 0.1, 0.001, 0.11, 0.03, 0.12, 0.06])
    scores = np.random.default_rng(2).normal(0.5, 0.02, (12, 1)) + seeds
    frame = long_frame(scores[None], ["a"], TASKS)
    row = same_design(frame, ["a"], TASKS, Settings(scores=())).set_index(["design", "side"]).loc[("a", 3)]
    found = []
    for one in combinations(range(7), 3):
        for other in combinations(sorted({*range(7)} - {*one}), 3):
            if one < other:
                means = scores[:, one].mean(axis=0), scores[:, other].mean(axis=0)
                found.append(ttest_ind(*means, equal_var=False).pvalue <= 0.05)
    assert row["splits"] == len(found) == 70
    assert row["significant"] == pytest.approx(np.mean(found))
    assert 0 < np.mean(found) < row["rejected"]


def test_copies_of_one_run_are_no_runs_to_deal(tmp_path):
    path, _ = written(tmp_path, {"a": 3, "b": 3, "c": 3})
    frame = pd.read_csv(path)
    copied = frame["model"] == "c"
    frame.loc[copied, "score"] = frame[copied].groupby("task")["score"].transform("first")
    frame.to_csv(path, index=False)
    beside, without = (
        {answer.name: answer for answer in analyse(Settings(scores=(path,), models=models)).answers}
        for models in (("a", "b", "c"), ("a", "b"))
    )
    name = "same_design"
    pd.testing.assert_frame_equal(beside[name].frames[name], without[name].frames[name])


def test_splits_are_all_and_each_once():
    assert splits(3, 1, 1).tolist() == [[0, 1], [0, 2], [1, 2]]
    for runs, one, other, count in ((6, 3, 3, 10), (10, 3, 3, 2100), (10, 3, 7, 120)):
        some = splits(runs, one, other)
        assert some.shape == (count, one + other)
        sides = [(frozenset(row[:one]), frozenset(row[one:])) for row in some.tolist()]
        assert len(set(map(frozenset, sides)) if one == other else set(sides)) == count
        assert all(len(first | second) == one + other for first, second in sides)
    many = splits(16, 5, 5)
    assert many.shape == (2500, 10)
    assert all(len(set(row)) == 10 for row in many.tolist())
    np.testing.assert_array_equal(splits(16, 5, 5, 40), many[:40])


def test_the_jackknife_is_the_usual_error_where_each_split_is_a_run():
    marks = np.array([True, False, False, True, True, False, False, False])
    error = np.sqrt(marks.mean() * (1 - marks.mean()) / 7)
    assert jackknife(marks, np.arange(8)[:, None], 8) == pytest.approx(error)
    assert np.isnan(jackknife(np.array([True, False, True]), splits(4, 2, 2), 4))
