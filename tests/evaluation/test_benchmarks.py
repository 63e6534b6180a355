"""What benchmark=, tasks= and tasks_dir= give."""

import pytest

from cli.compose import composed, plain
from evaluation.tasks.chosen import task_set

DATA = composed("train", ["data=docstrings"]).data


@pytest.mark.parametrize(("benchmark", "kept_out"), [("docstrings", "held_out"), ("docstrings_dev", "development")])
def test_what_is_scored_is_what_training_leaves_out(benchmark: str, kept_out: str) -> None:
    scored = composed("evaluate", [f"benchmark={benchmark}"]).benchmark.packages
    assert set(scored) == set(DATA[kept_out])
    assert not set(scored) & set(DATA.packages)


@pytest.mark.parametrize(("name", "size"), [("MTEB(eng, v1)", 56), ("MTEB(eng, v2)", 41)])
def test_a_benchmark_of_mteb_comes_whole(name: str, size: int) -> None:
    found = task_set(plain(composed("evaluate", ["benchmark=mteb", f"benchmark.name='{name}'"])))
    assert len(found.tasks) == size
    found_splits = {task.metadata.name: (task.eval_splits, task.hf_subsets) for task in found.tasks}
    assert found_splits["MassiveIntentClassification"] == (["test"], ["en"])
    assert found_splits["STS17"] == (["test"], ["en-en"])
    assert found_splits.get("MSMARCO", (["dev"], ["default"])) == (["dev"], ["default"])


def test_tasks_narrow_a_benchmark_down_in_the_order_given() -> None:
    cfg = plain(composed("evaluate", ["benchmark=docstrings_smoke"]))
    names = ["DocsNetworkxReranking", "DocsNetworkxRetrieval"]
    assert [t.metadata.name for t in task_set(cfg | {"tasks": names}).tasks] == names


def test_tasks_alone_are_of_mteb() -> None:
    (task,) = task_set(plain(composed("evaluate", ["~benchmark", "tasks=[STS22.v2]"]))).tasks
    assert task.metadata.name == "STS22.v2"
    assert task.hf_subsets == ["en"]  # English alone, not the pairs with another language


def test_a_folder_is_read(folder) -> None:
    found = task_set(plain(composed("evaluate", ["~benchmark", f"tasks_dir='{folder}'"])))
    assert len(found.tasks) == 7
    assert list(found.data) == [task.metadata.name for task in found.tasks]
