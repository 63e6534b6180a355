"""Files that are whole and hold what they must not, or what is odd and right: the former refused, the latter read."""

import gzip
import json
from pathlib import Path

import pytest

from evaluation.tasks.folder import folder_tasks
from records.foreign_files import FREE
from tests.analysis.conftest import analysed, write_task
from tests.evaluation.published_tasks import write_tasks
from tests.wrong_input.damages import answer
from tests.wrong_input.test_damaged_data import read
from tests.wrong_input.test_damaged_scores import study

GOOD = {"query": "q", "positive": "p"}
ODD_TEXTS = [
    "👩‍👩‍👧‍👦 family 🇺🇳 emoji",
    "\u202eright to left\u202c שלום עולם",
    "مرحبا بالعالم",
    "zero\u200bwidth and a\u0301ccents",
    "a\u2028line\u2029separator\x85and\x0bmore",
    "a NUL \0 within",
    "\ufeffa byte-order mark",
    "=cmd|'/c calc'!A0",
    "word " * 2_000_000,  # 10 MB
]


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_odd_texts_are_texts(tmp_path, text):
    """As they are, in every format."""
    rows, (json_lines, table, parquet) = (
        [{**GOOD, "query": text}],
        (tmp_path / f"a.{e}" for e in ("jsonl", "csv", "parquet")),
    )
    json_lines.write_text(json.dumps(rows[0]))
    with table.open("w", encoding="utf-8", newline="") as file:
        import csv

        writer = csv.writer(file)
        writer.writerows([["query", "positive"], [text, "p"]])
    import pyarrow
    from pyarrow import parquet as pq

    pq.write_table(pyarrow.table({"query": [text], "positive": ["p"]}), parquet)
    for path in (json_lines, table, parquet):
        assert [t.query for t in read("jsonl", path)] == [text], path.name


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r\n\n", "\n\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_marks_are_no_text(tmp_path, ends, mark):
    """Lines of several kinds of end in one file."""
    lines = [json.dumps({**GOOD, "query": f"q{k}"}) for k in range(3)]
    (tmp_path / "a.jsonl").write_bytes(mark + (lines[0] + ends + lines[1] + "\n" + lines[2] + ends).encode())
    assert [t.query for t in read("jsonl", tmp_path / "a.jsonl")] == ["q0", "q1", "q2"]
    table = "query,positive\n" + "".join(f"q{k},p{end}" for k, end in enumerate((ends, "\n", ends)))
    (tmp_path / "a.csv").write_bytes(mark + table.encode())
    assert [t.query for t in read("jsonl", tmp_path / "a.csv")] == ["q0", "q1", "q2"]
    long = [f"a line of text, number {k}" for k in range(3)]
    (tmp_path / "a.txt").write_bytes(mark + (long[0] + ends + long[1] + "\r" + long[2]).encode())
    assert [t.query for t in read("text", tmp_path / "a.txt")] == long


def packed_bomb(path: Path) -> None:
    line = json.dumps({**GOOD, "query": "a" * 10_000}).encode() + b"\n"
    path.write_bytes(gzip.compress(line * (FREE // len(line) + 1000)))


def one_line_bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(b'{"query": "' + b"a" * (FREE + 2**20)))


def parquet_bomb(path: Path) -> None:
    """One text that stands in every row, stored once."""
    import pyarrow
    from pyarrow import parquet

    indices = pyarrow.array([0] * 2000, pyarrow.int32())
    text = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(["a" * 2**16]))
    parquet.write_table(pyarrow.table({"query": text, "positive": text}), path)


@pytest.mark.parametrize(
    ("option", "name", "bomb"),
    [
        ("jsonl", "a.jsonl.gz", packed_bomb),
        ("jsonl", "a.jsonl.gz", one_line_bomb),
        ("jsonl", "a.csv.gz", one_line_bomb),
        ("text", "a.txt.gz", one_line_bomb),
        ("jsonl", "a.parquet", parquet_bomb),
    ],
)
def test_what_unpacks_to_more_than_text_does_is_refused(tmp_path, option, name, bomb):
    bomb(tmp_path / name)
    assert not answer(lambda: read(option, tmp_path / name), tmp_path, f"{name} unpacks to more than")


def test_a_table_of_scores_that_unpacks_to_more_is_refused(tmp_path):
    one_line_bomb(tmp_path / "a.csv.gz")
    assert not answer(lambda: analysed((f"scores={tmp_path / 'a.csv.gz'}",), ()), tmp_path, "unpacks to more than")


TASKS = [  # file, its content (a bytes value as it is, else a JSON value per line), the words of the answer
    ("SciFact/qrels/test.tsv", b"", "names no relevant document"),
    ("SciFact/qrels/test.tsv", b"q0\t0\t1\nnobody\t0\t1\n", "the query 'nobody' is missing"),
    ("SciFact/qrels/test.tsv", b"q0\t0\t0.5\n", "line 1: needs query-id, corpus-id and a whole score"),
    ("SciFact/qrels/test.tsv", b"q0\t0\t--1\n", "line 1: needs query-id, corpus-id and a whole score"),
    ("SciFact/qrels/test.tsv", "q0\t0\t\u00b2\n".encode(), "line 1: needs query-id, corpus-id and a whole score"),
    ("SciFact/qrels/test.tsv", b"q0\t0\t" + b"9" * 5000 + b"\n", "line 1: needs query-id, corpus-id and a whole score"),
    ("SciFact/corpus.jsonl", [{"_id": "0", "text": "a"}, {"_id": "0", "text": "b"}], "the _id '0' is there twice"),
    ("SciFact/corpus.jsonl", [{"_id": 0, "text": "a"}, {"_id": "0", "text": "b"}], "the _id '0' is there twice"),
    ("SciFact/corpus.jsonl", [{"_id": "0", "text": "\ud800"}], "half a character"),
    ("SciFact/corpus.jsonl", [{"_id": "\ud800", "text": "a"}], "half a character"),
    ("SciFact/corpus.jsonl", [{"_id": "0", "text": "a", "title": {"a": 1}}], "'title' must be a text"),
    ("SciFact/corpus.jsonl", [{"_id": "0", "text": ["a"]}], "'text' must be a text"),
    ("SciFact/queries.jsonl", [{"_id": None, "text": "a"}], "'_id' must be a text or a whole number"),
    ("SciFact/queries.jsonl", [{"_id": True, "text": "a"}], "'_id' must be a text or a whole number"),
    ("STSBenchmark/test.jsonl", [{"sentence1": "a", "sentence2": "\udfff", "score": 1}], "half a character"),
    ("STSBenchmark/test.jsonl", [{"sentence1": "a", "sentence2": "b", "score": 1e400}], "'score' must be a number"),
    ("STSBenchmark/test.jsonl", [{"sentence1": "a", "sentence2": "b", "score": 10**400}], "'score' must be a number"),
    ("MSRParaphrase/test.jsonl", [{"sentence1": "a", "sentence2": "b", "labels": [1]}], "'labels' must be 0 or 1"),
    ("MSRParaphrase/test.jsonl", [{"sentence1": "a", "sentence2": "b", "labels": 1}], "pairs of one label only"),
    ("Banking77Classification/train.jsonl", [{"text": "a", "label": "x"}], "has one class only"),
    ("Banking77Classification/train.jsonl", [{"text": "a", "label": 1.5}], "'label' must be a text or a whole number"),
    ("StackOverflowClustering/test.jsonl", [{"sentences": "a", "labels": "\ud800"}], "half a character"),
    ("WikiQAReranking/test.jsonl", [{"query": "a", "positive": ["\ud800"], "negative": ["b"]}], "half a character"),
    ("SummEval/test.jsonl", [{"text": "a", "human_summaries": ["b"], "machine_summaries": ["c", "d"],
                              "relevance": [1, float("inf")]}], "'relevance' must be a list of numbers"),
    ("STSBenchmark/task.json", [{"name": "../out", "type": "STS"}], "the name '../out'"),
    ("STSBenchmark/task.json", [{"name": "..", "type": "STS"}], "the name '..'"),
    ("STSBenchmark/task.json", [{"name": "a\0b", "type": "STS"}], "the name"),
    ("STSBenchmark/task.json", [{"name": "a\nb", "type": "STS"}], "the name"),
    ("STSBenchmark/task.json", [{"name": "a" * 300, "type": "STS"}], "the name"),
    ("STSBenchmark/task.json", [{"name": "\ud800", "type": "STS"}], "the name"),
    ("STSBenchmark/task.json", [{"name": "a", "type": ["STS"]}], "the key 'type' is missing"),
    ("STSBenchmark/task.json", [{"name": "a", "type": "STS", "prompt": ["p"]}], "prompt must be a sentence"),
    ("STSBenchmark/task.json", [{"name": "a", "type": "STS", "prompt": 5}], "prompt must be a sentence"),
    ("STSBenchmark/task.json", [{"name": "a", "type": "STS", "prompt": "say {text}"}], "prompt must be a sentence"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "content", "words"), TASKS, ids=[f"{t[0]}-{t[2][:30]}" for t in TASKS])
def test_a_task_that_holds_what_it_must_not(tmp_path, file, content, words):
    write_tasks(tmp_path)
    lines = content if isinstance(content, bytes) else "\n".join(map(json.dumps, content)).encode()
    (tmp_path / file).write_bytes(lines)
    folder = tmp_path / file.split("/", maxsplit=1)[0]
    fault = answer(lambda: folder_tasks(folder), tmp_path, words)
    assert not fault


SCORES = [
    ({"scores": {"test": [{"main_score": float("nan")}]}}, "main_score of subset 'default' is nan"),
    ({"scores": {"test": [{"main_score": "0.5"}]}}, "main_score of subset 'default' is 0.5, not a number"),
    ({"scores": {"test": [{"main_score": True}]}}, "main_score of subset 'default' is True"),
    ({"scores": {"test": [{"main_score": 1e300}]}}, "outside"),
    ({"scores": {"test": []}}, "has an empty or odd list of scores"),
    ({"scores": {"test": [1]}}, "has an empty or odd list of scores"),
    ({"scores": {}}, 'has no "scores"'),
    ({"scores": {"dev": [{"main_score": 0.5}], "train": [{"main_score": 0.5}]}}, "has the splits dev, train"),
    ({"task_name": "Nobody", "scores": {"test": [{"main_score": 0.5}]}}, "the type of task 'Nobody' is not known"),
    ({"task_name": "STS4", "scores": {"test": [{"main_score": 0.5}]}}, "has two scores on STS4"),
]


@pytest.mark.parametrize(("content", "words"), SCORES, ids=[s[1][:30] for s in SCORES])
def test_a_score_that_is_none(tmp_path, content, words):
    root = study(tmp_path).root
    path = next(iter(sorted(root.glob("results/*/*/STS3.json"))))
    path.write_text(json.dumps(content))
    assert not answer(lambda: analysed((f"scores={root}",), ()), tmp_path, words)


TABLES = [
    ("model,task,score\na,STS12,nan\n", "the score of STS12 is 'nan', not a number"),
    ("model,task,score\na,STS12,inf\n", "the score of STS12 is 'inf', not a number"),
    ("model,task,score\na,STS12,0,5\n", "4 cells where the header has 3"),
    ("model;task;score\na;STS12;0,5\n", "separated by semicolons"),
    ("model,task,score\na,STS12,0.5\na,STS12,0.6\n", "has two scores on STS12"),
    ("model,task,score\n,STS12,0.5\n", "model or task is empty"),
    ("model,task,score\na,STS12,1e9\n", "outside"),
    ("model,task,task\na,STS12,0.5\n", "two columns 'task'"),
    ("model,STS12\n\ud800,0.5\n", "cannot be read as a csv"),
    ("model,STS12\n=1+1,0.5\n=1+1,0.6\n", "is there twice"),
]


@pytest.mark.parametrize(("content", "words"), TABLES, ids=[t[1][:30] for t in TABLES])
def test_a_table_that_is_none(tmp_path, content, words):
    path = tmp_path / "scores.csv"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    assert not answer(lambda: analysed((f"scores={path}",), ()), tmp_path, words)


def test_names_of_any_letters_are_names(tmp_path):
    names = ["שלום", "👩‍👩‍👧", "a,b", 'say "so"', "<b>bold"]
    for k, name in enumerate(names):
        for task in range(4):
            write_task(tmp_path / "results" / name / "r", f"STS1{task + 2}", 0.1 * k + 0.01 * task)
    assert set(analysed((f"scores={tmp_path}",), ()).material.designs) == set(names)
