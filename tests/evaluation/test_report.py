"""The printed tables."""

from pathlib import Path

from evaluation.benchmarks import TaskSet
from evaluation.plan import plan
from evaluation.report import report, type_means
from evaluation.scoring import Outcome

SCORES = {"A": ("Retrieval", 0.2), "B": ("Retrieval", 0.4), "C": ("STS", 0.9)}


def test_each_task_counts_once_in_its_type_and_each_type_once_in_the_mean() -> None:
    outcome = Outcome("x", Path(), SCORES, computed=2, seconds=5.0, encoding=4.0, texts=100, tokens=8000)
    assert {k: round(v, 9) for k, v in type_means(outcome).items()} == {"Retrieval": 0.3, "STS": 0.9}
    table, speed = report([outcome]).split("\n\n")
    head = "mean main score Retrieval (2) STS (1) mean of types"
    assert " ".join(table.splitlines()[0].split()) == head
    assert table.splitlines()[1].split() == ["x", "0.3000", "0.9000", "0.6000"]
    assert speed.splitlines()[1].split() == ["x", "2", "of", "3", "100", "25", "2,000", "4.0", "1.0"]


def test_nothing_encoded_gives_no_rate() -> None:
    assert report([Outcome("x", Path(), SCORES)]).splitlines()[-1].split()[5:7] == ["-", "-"]


def test_the_plan_says_what_is_to_do(folder, candidate) -> None:
    from evaluation.folder_tasks import folder_tasks
    from evaluation.local_tasks import mteb_task

    tasks = [mteb_task(d) for d in folder_tasks(folder)]
    said = plan([candidate(), candidate("mean")], TaskSet(tasks, 4_000_000))
    assert said.startswith("2 encoders x 7 tasks = 14 scores; 0 are there. At most 1 M tokens an encoder;")
    assert "80 s of encoding" in said
