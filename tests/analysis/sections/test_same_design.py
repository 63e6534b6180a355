"""Runs of one design against each other: every split counted by scipy's test."""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from analysis.analyse import analyse
from analysis.settings import Settings

TASKS = [f"t{k}" for k in range(12)]


def found(tmp_path, seeds):
    """The answer's table for designs with so many seeds each, and the scores {design: [tasks, seeds]}."""
    rng = np.random.default_rng(2)
    scores = {d: rng.normal(0.5, 0.02, (12, n)) + rng.normal(0, 0.02, (1, n)) for d, n in seeds.items()}
    rows = [
        {"model": d, "task": t, "type": "STS", "seed": s, "score": values[k, s]}
        for d, values in scores.items()
        for k, t in enumerate(TASKS)
        for s in range(values.shape[1])
    ]
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    answers = {answer.name: answer for answer in analyse(Settings(scores=(path,))).answers}
    return answers.get("same_design"), scores


def test_every_split_is_counted(tmp_path):
    answer, scores = found(tmp_path, {"a": 4, "b": 2, "c": 1})
    frame = answer.frames["same_design"].set_index(["design", "side"])

    def rejected(one, other):
        return wilcoxon((one - other).mean(axis=1), method="exact").pvalue <= 0.05

    singles = {
        d: [rejected(v[:, [i]], v[:, [j]]) for i, j in combinations(range(v.shape[1]), 2)] for d, v in scores.items()
    }
    a = scores["a"]
    twos = [rejected(a[:, list(one)], a[:, list({0, 1, 2, 3} - set(one))]) for one in ((0, 1), (0, 2), (0, 3))]
    assert frame.loc[("a", 1), ["splits", "rejected"]].tolist() == [6, sum(singles["a"])]
    assert frame.loc[("a", 2), ["splits", "rejected"]].tolist() == [3, sum(twos)]
    assert frame.loc[("b", 1), ["splits", "rejected"]].tolist() == [1, sum(singles["b"])]
    assert frame.loc[("all designs", 1), ["splits", "rejected"]].tolist() == [7, sum(singles["a"] + singles["b"])]
    assert "c" not in frame.index.get_level_values("design")
    assert sum(singles["a"]) > 0, "a spread over seeds that nothing shows would test nothing"
    texts = [[cell.text for cell in row] for row in answer.grids[0].rows]
    assert [row[-1] for row in texts] == ["no claim"] * len(texts)


def test_with_six_runs_the_rule_is_tried_too(tmp_path):
    answer, _ = found(tmp_path, {"a": 6, "b": 6})
    frame = answer.frames["same_design"].set_index(["design", "side"])
    assert frame.loc[("a", 3), "splits"] == 10
    assert (frame["told"] <= frame["rejected"]).all()
    row = next(row for row in answer.grids[0].rows if [cell.text for cell in row[:2]] == ["a", "3"])
    assert row[-1].text == f"{frame.loc[('a', 3), 'told']} ({10 * frame.loc[('a', 3), 'told']:.0f} %)"


def test_one_run_each_has_nothing_to_compare(tmp_path):
    assert found(tmp_path, {"a": 1, "b": 1})[0] is None
