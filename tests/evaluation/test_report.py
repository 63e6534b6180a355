"""The printed tables."""

from pathlib import Path

from evaluation.report import report, task_notes, type_means
from evaluation.scoring import Outcome

SCORES = {"A": ("Retrieval", 0.2), "B": ("Retrieval", 0.4), "C": ("STS", 0.9)}


def test_each_task_counts_once_in_its_type_and_each_type_once_in_the_mean() -> None:
    outcome = Outcome(
        "x", Path(), SCORES, computed=2, seconds=5.0, encoding=4.0, caching=0.2, texts=100, cached=7, tokens=8000
    )
    assert {k: round(v, 9) for k, v in type_means(outcome).items()} == {"Retrieval": 0.3, "STS": 0.9}
    table, speed = report([outcome]).split("\n\n")
    head = "mean main score Retrieval (2) STS (1) mean of types"
    assert " ".join(table.splitlines()[0].split()) == head
    assert table.splitlines()[1].split() == ["x", "0.3000", "0.9000", "0.6000"]
    assert speed.splitlines()[1].split() == ["x", "2", "of", "3", "100", "7", "25", "2,000", "4.0", "0.2", "0.8"]


def test_nothing_encoded_gives_no_rate() -> None:
    assert report([Outcome("x", Path(), SCORES)]).splitlines()[-1].split()[6:8] == ["-", "-"]


def test_what_scores_are_of_is_said() -> None:
    import mteb

    tasks = {task.metadata.name: task for task in mteb.get_benchmark("MTEB(eng, v1)").tasks}
    assert task_notes([tasks["SciFact"], tasks["MassiveIntentClassification"], tasks["STS17"]]) == []
    asked = [tasks["MSMARCO"], mteb.get_task("MTOPIntentClassification")]
    said = "MSMARCO (dev), MTOPIntentClassification (validation and test, 6 subsets); of several, the mean."
    assert task_notes(asked) == [f"Not of the split test and one subset alone: {said}"]
