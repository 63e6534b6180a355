"""Every file of training data and of tasks, with every damage: one line that names the file and a remedy."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.compose import composed, plain
from corpora.raw_text import read_texts
from corpora.triples import read_triples
from evaluation.tasks.folder import folder_tasks
from representation.word_labels import read_conll
from tests.corpora.test_files import write_csv, write_jsonl, write_parquet
from tests.evaluation.small_tasks import write_tasks
from tests.wrong_input.damages import faults

PAIRS = [{"query": f"the {k} edge", "positive": f"an edge {k}", "negative": "hedge"} for k in range(9)]
LABELLED = [{"text": f"the edge {k}", "label": f"e{k % 3}"} for k in range(12)]
GRADED = [{"first": f"the edge {k}", "second": "hedge", "score": k} for k in range(9)]
TEXTS = [{"text": f"the edge of the hedge, number {k}, is green"} for k in range(30)]
IS_TEXT = ("cut", "a web page")  # as good as any other lines


def write(path: Path, rows: list[dict]) -> None:
    """Write good data of the kind that the name says."""
    if ".txt" in path.name:
        text = "".join(f"{row['text']}\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    elif ".jsonl" in path.name:
        write_jsonl(path, rows)
    else:
        (write_parquet if path.suffix == ".parquet" else write_csv)(path)


def read(option: str, path: Path, **changes: Any) -> Any:
    """What data=<option> reads from a path."""
    data = {**plain(composed("train", [f"data={option}"]))["data"], "path": str(path), **changes}
    return read_triples(data, "unused") if "reader" in data else read_texts(data, "unused")


def data(option: str, name: str, rows: list[dict]) -> Callable:
    def make(folder: Path):
        write(folder / name, rows)
        return folder / name, partial(read, option, folder / name)

    return make


def task(name: str, file: str) -> Callable:
    def make(folder: Path):
        write_tasks(folder)
        return folder / name / file, partial(folder_tasks, folder / name)

    return make


def conll(folder: Path):
    path = folder / "words.conll"
    path.write_text("the DT\nedge NN\nis VB\ngreen JJ\n\n" * 3)
    return path, partial(read_conll, path, -1)


READERS = {
    **{name: data("jsonl", name, PAIRS) for name in ("a.jsonl", "a.jsonl.gz", "a.csv", "a.csv.gz", "a.parquet")},
    "classes": data("classes", "a.jsonl", LABELLED),
    "graded": data("graded", "a.jsonl", GRADED),
    "texts": data("text", "a.jsonl", TEXTS),
    "a.txt": data("text", "a.txt", TEXTS),
    "a.txt.gz": data("text", "a.txt.gz", TEXTS),
    "conll": conll,
    **{file: task("Asked", file) for file in ("task.json", "corpus.jsonl", "queries.jsonl", "qrels/test.tsv")},
    "classification": task("Classes", "train.jsonl"),
    "clustering": task("Clusters", "test.jsonl"),
    "pairs": task("Pairs", "test.jsonl"),
    "reranking": task("Ranked", "test.jsonl"),
    "sts": task("Graded", "test.jsonl"),
    "summaries": task("Summaries", "test.jsonl"),
}
FINE = {"a.txt": IS_TEXT, "a.txt.gz": IS_TEXT, "conll": ("cut",)} | dict.fromkeys(
    ("qrels/test.tsv", "summaries"), ("cut",)
)  # at the end of a line


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file(tmp_path, name):
    found = faults(tmp_path, READERS[name], fine=FINE.get(name, ()))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r\n\n", "\n\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_marks_are_no_text(tmp_path, ends, mark):
    """Lines of several kinds of end in one file."""
    lines = [json.dumps({"query": f"q{k}", "positive": "p"}) for k in range(3)]
    (tmp_path / "a.jsonl").write_bytes(mark + (lines[0] + ends + lines[1] + "\n" + lines[2] + ends).encode())
    assert [t.query for t in read("jsonl", tmp_path / "a.jsonl")] == ["q0", "q1", "q2"]
    table = "query,positive\n" + "".join(f"q{k},p{end}" for k, end in enumerate((ends, "\n", ends)))
    (tmp_path / "a.csv").write_bytes(mark + table.encode())
    assert [t.query for t in read("jsonl", tmp_path / "a.csv")] == ["q0", "q1", "q2"]
    long = [f"a line of text, number {k}" for k in range(3)]
    (tmp_path / "a.txt").write_bytes(mark + (long[0] + ends + long[1] + "\r" + long[2]).encode())
    assert [t.query for t in read("text", tmp_path / "a.txt")] == long
