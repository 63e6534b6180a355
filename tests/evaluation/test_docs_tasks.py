"""The docs benchmark: what its tasks hold, that nothing but the texts decides it, and how it is kept."""

import random
from dataclasses import replace

import pytest
from datasets import Dataset

from cli.compose import composed
from corpora.copies import distinct
from corpora.docstrings import read_docstrings
from evaluation.tasks import docs
from evaluation.tasks.chosen import listed
from evaluation.tasks.docs import cached, graded, package_tasks, similarity, summarization
from evaluation.tasks.docs_documents import Document, Sizes, select
from evaluation.tasks.task_data import TaskData

SIZES = Sizes(documents=120, queries=50, classes=5, summarized=12)
PACKAGES = composed("evaluate", ["benchmark=docstrings"]).benchmark.packages


@pytest.fixture(scope="module")
def docstrings() -> list:
    return read_docstrings(["networkx"])


@pytest.fixture(scope="module")
def documents(docstrings: list) -> list:
    return select(docstrings, SIZES)


@pytest.fixture(scope="module")
def tasks(documents: list) -> dict:
    return {task.type: task for task in package_tasks("networkx", "here", documents, SIZES)}


def test_selection_does_not_depend_on_the_order_of_docstrings(docstrings: list, documents: list) -> None:
    shuffled = list(docstrings)
    random.Random(0).shuffle(shuffled)
    assert select(shuffled, SIZES) == documents


def test_no_query_has_two_answers(documents: list) -> None:
    assert len(documents) == SIZES.documents
    for texts in ([d.summary for d in documents], [d.body for d in documents]):
        assert len(distinct(texts)) == len(texts)


def test_retrieval_asks_for_the_own_body_among_neighbours(tasks: dict, documents: list) -> None:
    content = tasks["Retrieval"].content
    by_key = {d.key: d for d in documents}
    assert len(content["corpus"]) == SIZES.documents
    assert len(content["queries"]) == SIZES.queries
    for query, answers in content["qrels"].items():
        (answer,) = answers
        assert content["queries"][query] == by_key[answer].summary
        assert content["corpus"][answer]["text"] == by_key[answer].body
    shares_module = [sum(o.module == d.module for o in documents) > 1 for d in documents]
    assert sum(shares_module) > 0.6 * len(documents)


def test_candidates_to_rerank_hold_the_answer_and_nearest_others(tasks: dict, documents: list) -> None:
    content = tasks["Reranking"].content
    by_key = {d.key: d for d in documents}
    for query, ranked in content["top_ranked"].items():
        own = by_key[query[1:]]
        assert own.key in ranked
        assert len(set(ranked)) == SIZES.candidates
        assert set(ranked) <= set(content["corpus"])
        same_module = {d.key for d in documents if d.module == own.module}
        assert len(same_module & set(ranked)) == min(len(same_module), SIZES.candidates)


def test_false_pairs_come_from_the_nearest_module(tasks: dict, documents: list) -> None:
    pairs = tasks["PairClassification"].content["test"]
    assert sorted(pairs["labels"]) == [0] * SIZES.queries + [1] * SIZES.queries
    summary = {d.summary: d for d in documents}
    body = {d.body: d for d in documents}
    for left, right, label in zip(pairs["sentence1"], pairs["sentence2"], pairs["labels"], strict=True):
        assert (summary[left].key == body[right].key) == (label == 1)
        if label == 0 and any(d.module == summary[left].module and d != summary[left] for d in documents):
            assert body[right].module == summary[left].module


def test_classification_is_balanced_of_whole_docstrings_and_its_splits_are_apart(tasks: dict, documents: list) -> None:
    train, test = tasks["Classification"].content["train"], tasks["Classification"].content["test"]
    assert not set(train["text"]) & set(test["text"])
    counts = {label: test["label"].count(label) for label in test["label"]}
    assert set(counts) == set(train["label"]) == set(range(SIZES.classes))
    assert len(set(counts.values())) == 1
    assert min(train["label"].count(c) for c in counts) >= 8  # the shots mteb draws
    label = {f"{d.summary}\n\n{d.body}": d.label for d in documents}
    both = [pair for part in (train, test) for pair in zip(part["text"], part["label"], strict=True)]
    assert len({(label[text], number) for text, number in both}) == SIZES.classes


@pytest.mark.slow  # reads the whole corpus
@pytest.mark.parametrize("package", PACKAGES)
def test_every_held_out_package_gives_full_corpora_four_classes_and_relatives(package: str) -> None:
    sizes = Sizes()
    found = select(read_docstrings([package]), sizes)
    assert len(found) == sizes.documents
    assert len({d.label for d in found} - {""}) >= 4
    grades = similarity(found[: sizes.queries], found, sizes)["test"]["score"]
    assert len(grades) >= 180
    assert all(grades.count(g) > 1.7 * grades.count(3) for g in (0, 1, 2))
    assert len(summarization(found[: sizes.queries], sizes)["test"]["text"]) >= 25


TASK = TaskData(
    "A",
    "Retrieval",
    "ndcg_at_10",
    "here",
    {"corpus": {"d1": {}, "d0": {}}},
    prompt={"query": "Find"},
    settings={"n": 2},
)


def test_tasks_are_built_once_for_a_key_and_the_code(tmp_path, monkeypatch):
    assert cached(["numpy", "2.0"], tmp_path, lambda: [TASK]) == [TASK]
    (again,) = cached(["numpy", "2.0"], tmp_path, list)
    assert (again, again.sha256, list(again.content["corpus"])) == (TASK, TASK.sha256, ["d1", "d0"])
    assert cached(["numpy", "2.1"], tmp_path, lambda: [replace(TASK, name="C")])[0].name == "C"
    monkeypatch.setattr(docs, "CODE", (tmp_path,))
    assert cached(["numpy", "2.0"], tmp_path, list) == []


def test_a_column_is_a_list_with_the_same_values():
    columns = {"text": ["a", "b", "c"], "label": [2, 0, 1]}
    column, usual = listed().from_dict(columns), Dataset.from_dict(columns)
    assert column["label"] == [2, 0, 1]
    assert type(column["label"]) is list
    assert [column[i] for i in range(3)] == list(column) == list(usual)
    assert column[1:] == usual[1:]
    assert column.select([2, 0])[:] == usual.select([2, 0])[:]


def grade(one: Document, other: Document) -> int:
    """Of a pair, from the two modules and subpackages."""
    assert one.label
    if one.key == other.key:
        return 3
    if one.module == other.module:
        return 2
    return int(one.label == other.label)


def test_every_pair_has_the_grade_of_its_modules(tasks: dict, documents: list) -> None:
    pairs = tasks["STS"].content["test"]
    summary, body = {d.summary: d for d in documents}, {d.body: d for d in documents}
    rows = list(zip(pairs["sentence1"], pairs["sentence2"], pairs["score"], strict=True))
    assert [score for *_, score in rows] == [grade(summary[left], body[right]) for left, right, _ in rows]
    assert len({row[:2] for row in rows}) == len(rows)
    assert all(left != right for left, right, _ in rows)
    assert {summary[left].key for left, *_ in rows} <= {d.key for d in documents[: SIZES.queries]}


def test_a_body_is_summed_up_better_or_worse(tasks: dict, documents: list) -> None:
    rows = tasks["Summarization"].content["test"]
    assert len(rows["text"]) == SIZES.summarized
    summary, body = {d.summary: d for d in documents}, {d.body: d for d in documents}
    queries = {d.key for d in documents[: SIZES.queries]}
    for text, people, machine, relevance in zip(*rows.values(), strict=True):
        own = body[text]
        assert people == [text]
        assert machine[:2] == [own.summary, " ".join(own.summary.split()[: len(own.summary.split()) // 2])]
        assert own.summary.startswith(machine[1].split()[0])
        assert relevance == [4, 3, *(grade(own, summary[other]) for other in machine[2:])]
        assert set(relevance) == {0, 1, 2, 3, 4}
        assert {summary[other].key for other in machine[2:]} <= queries
        assert len(set(machine)) == len(machine)


def test_no_subpackage_no_grade() -> None:
    """A docstring of a subpackage that is too small for a class stands in another one than all classes."""
    made = [Document(str(k), f"p.s.m{k // 3}", "p.s", f"summary {k}", f"body {k}") for k in range(6)]
    odd = Document("odd", "p.t.m", "", "odd summary", "odd body")
    found = graded([*made, odd], [*made, odd], 9)
    assert [d.key for d, _ in found] == [d.key for d in made]
    for own, others in found:
        assert {o.key for g, o in others if g == 0} == {"odd"}
        assert {o.key for g, o in others if g == 2} == {d.key for d in made if d.module == own.module} - {own.key}
