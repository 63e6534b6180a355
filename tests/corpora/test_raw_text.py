"""Raw text from files, docstrings and hub data sets: each text once, with its source, or one line of complaint."""

import gzip
import json

import datasets
import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from corpora import hub
from corpora.docstring_pairs import training_side
from corpora.raw_text import read_texts
from corpora.readers import read_triples


def data(*words):
    return plain(composed("train", list(words)))["data"]


def test_lines_and_records_with_their_sources(tmp_path):
    (tmp_path / "a.txt").write_text("a first line of some length\n\nshort\na first line of some length\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("a line that was compressed\n")
    (tmp_path / "c.jsonl").write_text(json.dumps({"body": "a text in a column of its own"}) + "\n")
    found = read_texts(data("data=text", f"data.path='{tmp_path}/*.txt*'"), "")
    assert [(t.query, t.positive, t.source) for t in found] == [
        ("a first line of some length", "a first line of some length", "a"),
        ("a line that was compressed", "a line that was compressed", "b"),
    ]
    cfg = data("data=text", f"data.path='{tmp_path / 'c.jsonl'}'", "data.column=body")
    assert [t.query for t in read_texts(cfg, "")] == ["a text in a column of its own"]
    with pytest.raises(UserError, match=r"c.jsonl, record 1 has no text in column text \(it has body\)"):
        read_texts({**cfg, "column": "text"}, "")
    with pytest.raises(UserError, match=r"holds no text of data.shortest=500 characters"):
        read_texts({**cfg, "shortest": 500}, "")


def test_a_hub_data_set_from_a_folder_without_its_headings(tmp_path):
    lines = ["", " = A heading = \n", " A paragraph of the article . \n"]
    datasets.Dataset.from_dict({"text": lines}).save_to_disk(tmp_path / "wikitext")
    found = read_texts(data("data=wikitext", f"data.path='{tmp_path / 'wikitext'}'"), "")
    assert [(t.query, t.source) for t in found] == [("A paragraph of the article .", "wikitext")]


def test_without_a_hub_one_line_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "hub_reachable", lambda: False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(UserError, match="The hub cannot be reached: connect once") as error:
        read_texts(data("data=wikitext"), "")
    assert "\n" not in str(error.value)


def test_pairs_are_no_raw_text_and_raw_text_no_pairs(tmp_path):
    with pytest.raises(UserError, match="data=jsonl holds pairs"):
        read_texts(data("data=jsonl", "data.path=x.jsonl"), "")
    with pytest.raises(UserError, match="data=text holds raw text"):
        read_triples(data("data=text"), "")


def test_docstrings_are_of_the_training_side(tmp_path):
    """Of two small packages, one held out: nothing of it is read."""
    cfg = {**data("data=docstrings"), "packages": ["filelock"], "held_out": ["tqdm"], "development": []}
    found = read_texts(cfg, str(tmp_path))
    assert found
    assert {t.source for t in found} == {"filelock"}
    assert {t.query for t in found} == {d.text for d in training_side(cfg, str(tmp_path))}
    held = training_side({**cfg, "packages": ["tqdm"], "held_out": []}, str(tmp_path))
    assert not {t.query for t in found} & {d.text for d in held}


@pytest.mark.parametrize(("key", "read"), [("reader", read_triples), ("texts", read_texts)])
def test_what_a_reader_fails_to_import_is_named(monkeypatch, tmp_path, key, read):
    """Not that its package has no such module: the module is there."""
    (tmp_path / "own_readers").mkdir()
    (tmp_path / "own_readers" / "mine.py").write_text("import a_missing_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_missing_package"):
        read({"name": "mine", key: "own_readers.mine.read", "shortest": 1}, "")
