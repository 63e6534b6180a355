"""Tasks from a file are the tasks that were built; columns as lists score as views do."""

from dataclasses import replace

import pytest
from datasets import Dataset

from evaluation.tasks import docs
from evaluation.tasks.docs import cached
from evaluation.tasks.mteb_task import listed
from evaluation.tasks.task_data import TaskData

RETRIEVAL = {
    "corpus": {"d1": {"title": "", "text": "Käse"}, "d0": {"title": "t", "text": "bread"}},
    "queries": {"q": "food"},
    "qrels": {"q": {"d1": 1}},
    "top_ranked": None,
}
TASKS = [
    TaskData("A", "Retrieval", "ndcg_at_10", "here", RETRIEVAL, prompt={"query": "Find food"}),
    TaskData("B", "STS", "cosine_spearman", "here", {"test": {"sentence1": ["a"], "score": [0.1]}}, settings={"n": 2}),
]


def test_tasks_are_built_once_for_a_key(tmp_path):
    built = []

    def build():
        built.append(1)
        return TASKS

    assert cached(["numpy", "2.0"], tmp_path, build) == TASKS
    again = cached(["numpy", "2.0"], tmp_path, build)
    assert again == TASKS
    assert [t.sha256 for t in again] == [t.sha256 for t in TASKS]
    assert list(again[0].content["corpus"]) == ["d1", "d0"], "the order of documents is kept"
    assert len(built) == 1
    assert cached(["numpy", "2.1"], tmp_path, lambda: [replace(TASKS[0], name="C")])[0].name == "C"


def test_other_code_builds_anew(tmp_path, monkeypatch):
    cached("key", tmp_path, lambda: TASKS)
    monkeypatch.setattr(docs, "CODE", (tmp_path,))
    assert cached("key", tmp_path, lambda: TASKS[:1]) == TASKS[:1]


def test_a_column_is_a_list_with_the_same_values():
    columns = {"text": ["a", "b", "c"], "label": [2, 0, 1]}
    column, usual = listed().from_dict(columns), Dataset.from_dict(columns)
    assert column["label"] == [2, 0, 1]
    assert type(column["label"]) is list
    assert [column[i] for i in range(3)] == list(column) == list(usual)
    assert column[1:] == usual[1:]
    assert column.select([2, 0])[:] == usual.select([2, 0])[:]
    with pytest.raises(ValueError, match="none"):
        column["none"]
