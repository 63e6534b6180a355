"""The tasks that carry a difference against every other set of as many tasks, and the sentence of the verdict."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import wilcoxon

from analysis.analyse import analyse
from analysis.cli import read_arguments
from analysis.statistics.influence import carriers
from tests.analysis.three_seeds import long_frame

ASKED = ("influence",)


def p_without(differences, places):
    return wilcoxon(np.delete(differences, list(places)), alternative="greater").pvalue


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_no_other_set_of_as_many_tasks_gives_a_larger_p(seed, count):
    d = np.random.default_rng(seed).normal(0.8, 1, 9)
    calls = []
    assert carriers(d, 1.0, lambda places: calls.append(places) or len(places) == count, 5) == calls[-1]
    largest = max(p_without(d, places) for places in combinations(range(9), count))
    assert p_without(d, calls[-1]) == pytest.approx(largest)
    assert carriers(-d, -1.0, lambda places: len(places) == count, 5) == calls[-1]


def test_more_than_most_or_than_there_are_on_its_side_are_none():
    assert carriers(np.arange(1.0, 10), 1.0, lambda _: False, 3) == []
    assert carriers(np.array([3.0, -1.0, -2.0]), 1.0, lambda places: len(places) == 2, 3) == []


def written(path, scores, kinds):
    """A csv of designs -> scores of the tasks t0, t1, ..., whose types are `kinds`."""
    tasks = pd.DataFrame({"task": [f"t{k}" for k in range(len(kinds))], "type": kinds})
    pd.concat([tasks.assign(model=name, score=of) for name, of in scores.items()]).to_csv(path, index=False)
    return path


def influence_of(path, differences, analyse_words):
    """What `analysis` gives for two designs that differ so, and its answer `influence`."""
    a = np.random.default_rng(0).uniform(0.3, 0.5, len(differences))
    path = written(path / "s.csv", {"a": a, "b": a + differences}, ["STS"] * len(differences))
    result = analyse_words(f"scores={path}")
    (answer,) = (answer for answer in result.answers if answer.name == "influence")
    return result, answer


def test_the_verdict_names_the_tasks_that_carry_it(tmp_path, analyse_words):
    """12 tasks, W- = 5 + 6 = 11: p .0269; without one of the six largest still 11, but of 66: p .0537."""
    differences = np.arange(1, 13) / 100 * np.where(np.isin(np.arange(1, 13), (5, 6)), -1, 1)
    result, answer = influence_of(tmp_path, differences, analyse_words)
    row = answer.frames["influence"].iloc[0]
    assert (row["n_carriers"], row["carriers"], row["within_reach"]) == (1, "t11", True)
    assert row["p"] == pytest.approx(2 * p_without(differences, []))
    assert row["p_without_carriers"] == pytest.approx(2 * p_without(differences, [11]))
    alone = [2 * p_without(differences, [k]) for k in range(12)]
    assert row["n_alone"] == sum(p > 0.05 for p in alone) == 6
    assert (row["task_of_most"], row["p_without_one"]) == (row["carriers"], pytest.approx(max(alone)))
    said = "The lead rests on single tasks: without any one of 6 of the 12 it does not pass (without {} p = .0537, "
    assert said.format(row["carriers"]) in result.verdict
    assert said.format(row["carriers"]) in result.summary
    assert (answer.grids[0].rows[0][-1].text, answer.grids[0].rows[0][-1].below) == (
        "1",
        (row["carriers"], "or one of 5 others"),
    )


def test_one_task_alone_carries_it(tmp_path, analyse_words):
    """12 tasks, W- = 11: p .0269; without the largest still 11, but of 66: p .0537; without another 10 at most."""
    differences = np.arange(1, 13) / 100 * np.where(np.arange(1, 13) == 11, -1, 1)
    result, answer = influence_of(tmp_path, differences, analyse_words)
    row = answer.frames["influence"].iloc[0]
    assert sum(2 * p_without(differences, [k]) > 0.05 for k in range(12)) == 1
    assert (row["n_alone"], row["carriers"]) == (1, "t11")
    assert "The lead rests on this task of 12: t11; without it p = .0537." in result.verdict


def test_so_few_tasks_that_none_carries_it(tmp_path, analyse_words):
    """8 tasks, all for b: p .0078; without any three 2 / 2^5 = .0625, whatever the scores."""
    result, answer = influence_of(tmp_path, np.arange(1, 9) / 100, analyse_words)
    row = answer.frames["influence"].iloc[0]
    assert (row["n_carriers"], row["carriers"], row["within_reach"]) == (3, "t7; t6; t5", False)
    assert (row["p"], row["p_without_one"], row["p_without_carriers"]) == (2 / 2**8, 2 / 2**7, 2 / 2**5)
    assert "Without any 3 of the 8 tasks no result could pass" in result.verdict
    assert "rests on" not in result.verdict + result.summary
    assert answer.grids[0].rows[0][-1].text == "any 3"


def test_a_task_on_which_the_two_agree_costs_no_reach(tmp_path, analyse_words):
    """Eight tasks for b and one tie: without the tie and two others p is still 2 / 2^6."""
    result, answer = influence_of(tmp_path, np.arange(9) / 100, analyse_words)
    row = answer.frames["influence"].iloc[0]
    assert (row["n_tasks"], row["n_differing"], row["n_carriers"], row["within_reach"]) == (9, 8, 3, False)
    assert "Without any 3 of the 8 tasks on which the two differ no result could pass" in result.verdict


def test_three_seeds_are_told_without_a_task_as_scipy_has_it(tmp_path):
    """p without each task: the larger of scipy's signed-rank test of the seed means and the two-way model by hand."""
    rng = np.random.default_rng(3)
    shift = rng.normal(0.03, 0.015, (10, 1)) + rng.normal(0, 0.008, (1, 3)) + rng.normal(0, 0.004, (10, 3))
    base = rng.uniform(0.3, 0.5, (10, 1)) + rng.normal(0, 0.004, (10, 3))
    tasks = [f"t{k}" for k in range(10)]
    frame = long_frame(np.stack([base, base + shift]), ["a", "b"], tasks).assign(type="STS")
    frame.rename(columns={"design": "model"}).to_csv(tmp_path / "s.csv", index=False)
    found = {answer.name: answer for answer in analyse(read_arguments([f"scores={tmp_path / 's.csv'}"])).answers}
    row = found["influence"].frames["influence"].iloc[0]

    def larger_p(kept):
        d = shift[kept]
        n, s = d.shape
        by_task, by_seed = d.mean(axis=1), d.mean(axis=0)
        squares = {"task": s * by_task.var(ddof=1), "seed": n * by_seed.var(ddof=1)}
        left = d - by_task[:, None] - by_seed + d.mean()
        squares["rest"], free = (left**2).sum() / ((n - 1) * (s - 1)), {"task": n - 1, "seed": s - 1}
        free["rest"] = free["task"] * free["seed"]
        whole = squares["task"] + squares["seed"] - squares["rest"]
        assert whole > max(squares.values())
        df = whole**2 / sum(square**2 / free[name] for name, square in squares.items())
        over_seeds = 2 * stats.t.sf(abs(d.mean()) / np.sqrt(whole / (n * s)), df)
        return max(over_seeds, wilcoxon(by_task, method="exact").pvalue)

    kept = np.arange(10)
    assert row["p"] == pytest.approx(larger_p(kept))
    without = {task: larger_p(np.delete(kept, k)) for k, task in enumerate(tasks)}
    assert row["p_without_one"] == pytest.approx(without[row["task_of_most"]])
    alone = [task for task, p in without.items() if p > 0.05]
    assert row["n_alone"] == len(alone)
    most = max(alone or tasks, key=without.get)
    assert (row["task_of_most"], without[most]) == (most, max(without.values()))


def test_one_family_of_all_types_and_pairs_that_are_not_told(tmp_path, analyse_words):
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.5, (40, 1)) + np.array([0, 0.05, 0.05]) + rng.normal(0, 0.01, (40, 3))
    kinds = ["STS"] * 20 + ["Retrieval"] * 20
    path = written(tmp_path / "s.csv", dict(zip("abc", scores.T, strict=True)), kinds)
    for words in ((), ("family=table",)):
        result = analyse_words(f"scores={path}", *words)
        (answer,) = (answer for answer in result.answers if answer.name == "influence")
        table = answer.frames["influence"]
        assert list(zip(table["first"], table["second"], strict=True)) == [("a", "b"), ("a", "c")]
        assert table["n_carriers"].isna().all()  # more than ten
        assert "rests on" not in result.verdict
