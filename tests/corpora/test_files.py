"""`data=jsonl`: the same triples from every format, and one line naming file, line and mend for what cannot be used."""

import csv
import gzip
import io
import json
import re

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.files import data_files
from corpora.triples import Triple, read_triples
from training.checks import check_examples

ROWS = [
    {"query": "what is a sum", "positive": "all, added", "negative": 'a "product"', "source": "maths"},
    {"query": "größe", "positive": "two\nlines", "negative": ["one", "two"], "instruction": "Translate"},
    {"query": "none", "positive": "without a negative", "id": 7},
    {"query": "taught", "positive": "p", "negative": "n", "scores": [1, -0.5]},
]
TRIPLES = [
    Triple("what is a sum", "all, added", ('a "product"',), "maths", None),
    Triple("größe", "two\nlines", ("one", "two"), "pairs", "Translate"),
    Triple("none", "without a negative", (), "pairs", None),
    Triple("taught", "p", ("n",), "pairs", None, (1.0, -0.5)),
]


def read(path, **changes) -> list[Triple]:
    data = plain(composed("train", ["data=jsonl"]))["data"]
    return read_triples({**data, "path": str(path), **changes}, "unused")


def write_jsonl(path, rows=ROWS):
    lines = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())


def write_csv(path):
    file = io.StringIO(newline="")
    columns = ["query", "positive", "negative", "source", "instruction", "scores"]
    table = csv.DictWriter(file, columns, extrasaction="ignore", delimiter="\t" if ".tsv" in path.name else ",")
    table.writeheader()
    for row in ROWS:
        negative = row.get("negative")
        table.writerow({**row, "negative": json.dumps(negative) if isinstance(negative, list) else negative})
    content = file.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_parquet(path):
    import pyarrow
    from pyarrow import parquet

    rows = [{**r, "negative": [n] if isinstance(n := r.get("negative"), str) else n} for r in ROWS]
    columns = ("query", "positive", "negative", "source", "instruction", "scores")
    parquet.write_table(pyarrow.table({c: [r.get(c) for r in rows] for c in columns}), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("pairs.jsonl", write_jsonl),
        ("pairs.jsonl.gz", write_jsonl),
        ("pairs.csv", write_csv),
        ("pairs.csv.gz", write_csv),
        ("pairs.tsv", write_csv),
        ("pairs.tsv.gz", write_csv),
        ("pairs.parquet", write_parquet),
    ],
)
def test_every_format_gives_the_same_triples(tmp_path, name, write):
    write(tmp_path / name)
    assert read(tmp_path / name) == TRIPLES


def test_columns_of_other_names(tmp_path):
    write_jsonl(tmp_path / "pairs.jsonl", [{"question": "q", "answer": "p", "wrong": "n"}])
    columns = {"query": "question", "positive": "answer", "negative": "wrong"}
    columns |= {"source": "s", "instruction": "i", "scores": "t"}
    assert read(tmp_path / "pairs.jsonl", columns=columns) == [Triple("q", "p", ("n",), "pairs")]


OF_TOOLS = [
    {"anchor": "q", "positive": "p", "negative_1": "n", "negative_2": "m"},  # sentence-transformers
    {"query": "q", "pos": ["p"], "neg": ["n", "m"]},  # FlagEmbedding
    {"query": "q", "positive_passages": [{"text": "p"}], "negative_passages": [{"title": "n", "text": ""}, "m"]},
    {"query": "q", "positives": "p", "hard_negatives": ["n", "m"]},
]


@pytest.mark.parametrize("row", OF_TOOLS)
def test_columns_as_other_tools_name_them(tmp_path, row):
    path = tmp_path / "pairs.jsonl"
    write_jsonl(path, [row])
    assert read(path) == [Triple("q", "p", ("n", "m"), "pairs")]
    ours = {"query": "q", "positive": "p", "negative": "of ours"}
    write_jsonl(path, [{**row, **ours}, row])
    assert read(path)[0].negatives[0] == "of ours", "our own names first"
    write_jsonl(path, [row])
    named = plain(composed("train", ["data=jsonl", "data.columns.negative=wrong"]))["data"]["columns"]
    assert read(path, columns=named)[0].negatives == (), "a name that is given is that alone"


def test_a_record_of_several_positives_is_an_example_for_each(tmp_path):
    path = tmp_path / "pairs.jsonl"
    passages = [{"title": "The", "text": "one"}, {"docid": "7", "title": None, "text": "other"}]
    write_jsonl(path, [{"query": "q", "positive_passages": passages, "negative": "n"}])
    assert read(path) == [Triple("q", positive, ("n",), "pairs") for positive in ("The one", "other")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_hard_negatives_of_data_without_any_are_refused(tmp_path, name):
    rows = [{"query": "q", "positive": "p", "wrong": "n"}, {"query": "q", "positive": "p"}]
    text = "query,positive,wrong\nq,p,n\n" if name == "a.csv" else "\n".join(map(json.dumps, rows))
    (tmp_path / name).write_text(text)
    words = ["data=jsonl", f"data.path='{tmp_path / name}'", "objective.hard_negatives=1"]
    config = plain(composed("train", words))
    examples = read_triples(config["data"], "")
    with pytest.raises(UserError, match=r"no record of data=jsonl .*, for one of wrong"):
        check_examples(config, examples)
    check_examples({**config, "objective": {"hard_negatives": 0}}, examples)
    check_examples(config, [*examples, Triple("q", "p", ("n",))])


def test_several_files_and_globs_in_the_order_given(tmp_path):
    for name in ("b.jsonl", "a.jsonl.gz", "c,d.jsonl"):
        write_jsonl(tmp_path / name)
    a, b, comma = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl", tmp_path / "c,d.jsonl"
    assert data_files(f"{b},{a}") == [b, a]
    assert data_files([str(b), str(a)]) == [b, a]
    assert data_files(f"{b},{tmp_path}/[ab].*") == [b, a]
    assert data_files(str(comma)) == [comma]
    assert [t.source for t in read(f"{b}, {a}")] == ["maths", *"bbb", "maths", *"aaa"]


GOOD = '{"query": "q", "positive": "p"}\n'
FAULTS = [
    ("a.jsonl", GOOD + '{"query": "q"', "a.jsonl, line 2 is not JSON .*one object a line"),
    ("a.jsonl", GOOD + r'{"query": "q", "positive": "\ud800"}', "line 2 is not JSON .*surrogates not allowed"),
    ("a.jsonl", '{"query": "q", "postive": "p"}', "line 1 has no 'positive'; nearest is 'postive'. Rename it"),
    ("a.jsonl", GOOD + '{"positive": "p", "text": "q"}', "line 2 has no 'query'; it has 'text'. .*data.columns.query="),
    ("a.jsonl", GOOD[:-2] + ', "negative": ["n", 4]}', r"line 1 has int '4' as 'negative\[1\]'"),
    ("a.jsonl", GOOD[:-2] + ', "scores": "high"}', "has 'high' as 'scores'. It must be a list of finite numbers"),
    ("a.csv", "query,positive\nq,p\nq,p,n\n", "a.csv, line 3 has more cells than the first line"),
    ("a.csv", "query,positive,negative\nq,p,\"['a', 'b']\"\n", "line 2 has a list that is not JSON"),
    ("a.jsonl", '{"query": "q", "pos": []}', "line 1 has no text as 'pos'. Remove the record"),
    ("a.jsonl", '{"query": "q", "pos": ["p", "r"], "scores": [1]}', "line 1 has 2 texts as 'pos'. Give one, or"),
    ("a.tsv", 'query\tpositive\n"q" r\tp\n', "a.tsv, after line 1: not of its format .* Write a cell with a quote as"),
    ("a.txt", "q p", "a.txt is of no known kind. Give .jsonl, .csv or .tsv"),
]


@pytest.mark.parametrize(("name", "content", "message"), FAULTS, ids=[f[2][:40] for f in FAULTS])
def test_what_cannot_be_used_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as raised:
        read(tmp_path / name)
    assert re.search(message, str(raised.value))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", r"data.path is empty. Name the files: data.path=a.jsonl.gz,b.csv"),
        ("nowhere-*.jsonl", r"There is no data file nowhere-\*.jsonl. .*relative paths start at"),
        (".", r"is a folder. Name its files: data.path='./\*.jsonl.gz'"),
    ],
)
def test_files_that_are_not_there(path, message):
    with pytest.raises(UserError, match=message):
        read(path)
