"""The printed table and notes."""

from pathlib import Path

from evaluation.report import score_table, task_notes, type_means
from evaluation.scoring import Outcome

SCORES = {"A": ("Retrieval", 0.2), "B": ("Retrieval", 0.4), "C": ("STS", 0.9)}


def test_each_task_counts_once_in_its_type_and_each_type_once_in_the_mean() -> None:
    outcome = Outcome("x", Path(), SCORES)
    assert {k: round(v, 9) for k, v in type_means(outcome).items()} == {"Retrieval": 0.3, "STS": 0.9}
    head, row = score_table([outcome]).splitlines()
    assert " ".join(head.split()) == "mean main score Retrieval (2) STS (1) mean of types"
    assert row.split() == ["x", "0.3000", "0.9000", "0.6000"]


def test_what_scores_are_of_is_said() -> None:
    import mteb

    tasks = {task.metadata.name: task for task in mteb.get_benchmark("MTEB(eng, v1)").tasks}
    assert task_notes([tasks["SciFact"], tasks["MassiveIntentClassification"], tasks["STS17"]]) == []
    asked = [tasks["MSMARCO"], mteb.get_task("MTOPIntentClassification")]
    said = "MSMARCO (dev), MTOPIntentClassification (validation and test, 6 subsets); of several, the mean."
    assert task_notes(asked) == [f"Not of the split test and one subset alone: {said}"]
