"""STS and Summarization of the docs benchmark: the grade of every pair is where its docstrings stand."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from corpora.docstrings import read_docstrings
from evaluation.scoring import Options, score
from evaluation.tasks.docs import graded, package_tasks
from evaluation.tasks.docs_documents import Document, Sizes, select
from evaluation.tasks.mteb_task import mteb_task
from evaluation.tasks.task_data import TYPES

SIZES = Sizes(documents=120, queries=50, classes=5, summarized=12)


@pytest.fixture(scope="module")
def documents() -> list:
    return select(read_docstrings(["networkx"]), SIZES)


@pytest.fixture(scope="module")
def tasks(documents: list) -> dict:
    return {task.type: task for task in package_tasks("networkx", "here", documents, SIZES)}


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


def test_each_summary_has_every_grade(tasks: dict) -> None:
    pairs = tasks["STS"].content["test"]
    for left in set(pairs["sentence1"]):
        grades = [g for text, g in zip(pairs["sentence1"], pairs["score"], strict=True) if text == left]
        counts = [grades.count(g) for g in (3, 2, 1, 0)]
        assert counts[0] == 1
        assert all(1 <= n <= SIZES.relatives for n in counts[1:])


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


def test_mteb_scores_what_the_vectors_say(tasks: dict, candidate, bag) -> None:
    class Untied(bag):
        """With a little of each text's own noise: equal cosines would be ranked by their rounding."""

        def encode(self, texts, instruction="", progress=None):
            noise = [np.random.default_rng(list(text.encode())).normal(size=self.embedding_dim) for text in texts]
            return super().encode(texts, instruction) + 0.01 * np.array(noise, dtype=np.float32)

    encoder = Untied()
    outcome = score(candidate(encoder=Untied()), [mteb_task(tasks[kind]) for kind in TYPES[-2:]], Options())
    found = dict(outcome.scores.values())

    def cosines(left: list[str], right: list[str]) -> np.ndarray:
        one, other = (np.asarray(encoder.encode(texts, ""), dtype=float) for texts in (left, right))
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        return (one * other).sum(axis=1) / lengths

    pairs = tasks["STS"].content["test"]
    expected = spearmanr(cosines(pairs["sentence1"], pairs["sentence2"]), pairs["score"]).statistic
    assert found["STS"] == pytest.approx(expected, abs=1e-5)
    rows = tasks["Summarization"].content["test"]
    each = [
        spearmanr(cosines(body * len(machine), machine), relevance).statistic
        for body, machine, relevance in zip(
            rows["human_summaries"], rows["machine_summaries"], rows["relevance"], strict=True
        )
    ]
    assert found["Summarization"] == pytest.approx(np.mean(each), abs=1e-5)
    assert all(0.1 < value < 0.95 for value in found.values())  # words that both share tell something, not all


def test_no_subpackage_no_grade() -> None:
    """A docstring of a subpackage that is too small for a class stands in another one than all classes."""
    made = [Document(str(k), f"p.s.m{k // 3}", "p.s", f"summary {k}", f"body {k}") for k in range(6)]
    odd = Document("odd", "p.t.m", "", "odd summary", "odd body")
    found = graded([*made, odd], [*made, odd], 9)
    assert [d.key for d, _ in found] == [d.key for d in made]
    for own, others in found:
        assert {o.key for g, o in others if g == 0} == {"odd"}
        assert {o.key for g, o in others if g == 2} == {d.key for d in made if d.module == own.module} - {own.key}
