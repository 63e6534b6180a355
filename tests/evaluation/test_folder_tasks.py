"""Folders of tasks: all seven types give mteb's scores; malformed files are named with line and column."""

import json
from pathlib import Path

import pytest

from cli.errors import UserError
from evaluation.scoring import Options, score
from evaluation.tasks.chosen import mteb_task
from evaluation.tasks.folder import folder_tasks


def test_bag_of_words_is_perfect_on_all_seven_types(folder: Path, candidate) -> None:
    tasks = [mteb_task(data) for data in folder_tasks(folder)]
    outcome = score(candidate(), tasks, Options())
    assert {kind for kind, _ in outcome.scores.values()} == {
        "Retrieval", "Reranking", "Classification", "Clustering", "PairClassification", "STS", "Summarization"
    }  # fmt: skip
    for name, (_, value) in outcome.scores.items():
        assert value == pytest.approx(1.0, abs=1e-6), name


def test_the_scale_of_grades_and_the_main_score_reach_mteb(folder: Path) -> None:
    about = {"name": "Graded", "type": "STS", "main_score": "pearson", "min_score": 1, "max_score": 4, "prompt": "p"}
    (folder / "Graded" / "task.json").write_text(json.dumps(about))
    task = mteb_task(folder_tasks(folder, ["Graded"])[0])
    assert (task.min_score, task.max_score) == (1, 4)
    assert (task.metadata.main_score, task.metadata.prompt) == ("pearson", "p")


PAIR = '{"sentence1": "a", "sentence2": "b", "labels": %d}\n'
UNEQUAL = '{"text": "a", "human_summaries": ["b"], "machine_summaries": ["c"], "relevance": [1, 2]}'
BROKEN = [
    ("Graded/test.jsonl", '{"sentence1": "a", "sentence2": "b"}', "line 1: the column 'score' is missing"),
    ("Graded/test.jsonl", "", "is empty"),
    ("Pairs/test.jsonl", PAIR % 1 + PAIR % 5, "record 2: 'labels' must be 0 or 1"),
    ("Classes/test.jsonl", '{"text": "a", "label": "unheard"}', "label 'unheard' does not occur in train.jsonl"),
    ("Asked/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\tnowhere\t1\n", "line 2: its query or document"),
    ("Asked/qrels/test.tsv", "q0\td0\t0\n", "no relevant document"),
    ("Summaries/test.jsonl", UNEQUAL, "equal length"),
    ("Graded/test.jsonl", '{"sentence1": "a", "sentence2": "b", "score": NaN}', "'score' must be a number"),
    ("Summaries/test.jsonl", UNEQUAL.replace("1, 2", '"1"'), "'relevance' must be a number"),
    ("Asked/task.json", '{"name": "Asked", "type": "STS", "prompt": 5}', "the key 'prompt' must be a text"),
    ("Asked/task.json", '{"name": "Asked", "type": "STS", "min_scor": 1}', "no key 'min_scor'. Nearest: min_score"),
    ("Asked/task.json", '{"name": "Asked", "type": "Retreival"}', "no type 'Retreival'. Nearest: Retrieval"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "content", "message"), BROKEN)
def test_a_broken_file_is_named(folder: Path, file: str, content: str, message: str) -> None:
    (folder / file).write_text(content)
    with pytest.raises(UserError) as caught:
        folder_tasks(folder)
    assert message in str(caught.value)
    assert file.split("/", maxsplit=1)[0] in str(caught.value) or "call themselves" in message


def collection(folder: Path, documents: int) -> Path:
    """A collection of as many documents, queries and judgements; query i asks for document i."""
    place = folder / "Large"
    (place / "qrels").mkdir(parents=True)
    (place / "task.json").write_text(json.dumps({"name": "Large", "type": "Retrieval"}))
    lines = [json.dumps({"_id": f"d{i}", "text": f"word{i} and other{i}"}) for i in range(documents)]
    (place / "corpus.jsonl").write_text("\n".join(lines))
    asked = [json.dumps({"_id": f"q{i}", "text": f"word{i}"}) for i in range(documents)]
    (place / "queries.jsonl").write_text("\n".join(asked))
    judged = [f"q{i}\td{i}\t1" for i in range(documents)]
    (place / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    return place


def test_judgements_of_what_is_not_there_are_left_out_and_counted(folder: Path, capsys) -> None:
    place = collection(folder, 500)
    (clean,) = folder_tasks(folder, ["Large"])
    with (place / "queries.jsonl").open("a") as lines:
        lines.write('\n{"_id": "lost", "text": "word of the lost"}')
    with (place / "qrels" / "test.tsv").open("a") as lines:
        lines.write("\nq1\tnowhere\t1\nnobody\td1\t1\nlost\tnowhere\t1\nlost\td3\t0\n")
    (data,) = folder_tasks(folder, ["Large"])
    assert data.content == clean.content
    assert "Large: 3 judgements of queries or documents that are missing left out" in capsys.readouterr().out


def test_an_empty_document_is_ranked_as_one_of_mteb_is(folder: Path, candidate) -> None:
    with (folder / "Asked" / "corpus.jsonl").open("a") as lines:
        lines.write('\n{"_id": "empty", "title": " ", "text": ""}')
    outcome = score(candidate(), [mteb_task(folder_tasks(folder, ["Asked"])[0])], Options())
    assert outcome.scores["Asked"][1] == 1.0


def test_a_document_that_is_there_twice_is_refused(folder: Path) -> None:
    place = collection(folder, 500)
    with (place / "corpus.jsonl").open("a") as lines:
        lines.write('\n{"_id": "d7", "text": "another text"}')
    with pytest.raises(UserError, match=r"corpus\.jsonl: the _id 'd7' is there twice"):
        folder_tasks(folder, ["Large"])


def test_an_unknown_task_brings_the_nearest_names(folder: Path) -> None:
    with pytest.raises(UserError, match=r"no task 'Cluster'.*Nearest: Clusters"):
        folder_tasks(folder, ["Cluster"])
