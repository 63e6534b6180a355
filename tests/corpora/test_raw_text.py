"""Raw text and hub data sets: each text once, with its source, or one line of complaint."""

import gzip
import json
import time

import datasets
import pytest
from huggingface_hub import constants

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.docstring_pairs import training_side
from corpora.raw_text import read_texts
from corpora.triples import Triple, read_triples


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


def test_a_copy_of_a_hub_repository_is_read_as_on_the_hub(tmp_path, monkeypatch):
    """Of several files or subsets the one that is trained on."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    (tmp_path / "nli.csv").write_text("text\nnot this premise of natural language\n")
    (tmp_path / "wiki1m_for_simcse.txt").write_text("a sentence of English Wikipedia\n")
    found = read_texts(data("data=wiki_sentences", f"data.path='{tmp_path}'"), "")
    assert [t.query for t in found] == ["a sentence of English Wikipedia"]
    configs = [{"config_name": n, "data_files": f"{n}/*"} for n in ("wikitext-2-v1", "wikitext-103-raw-v1")]
    (tmp_path / "two" / "README.md").parent.mkdir()
    (tmp_path / "two" / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    for config in configs:
        (tmp_path / "two" / config["config_name"]).mkdir()
        (tmp_path / "two" / config["config_name"] / "train.txt").write_text(
            f"a line of {config['config_name']} alone\n"
        )
    found = read_texts(data("data=wikitext", f"data.path='{tmp_path / 'two'}'"), "")
    assert [t.query for t in found] == ["a line of wikitext-103-raw-v1 alone"]


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


ROWS = [{"query": f"q{i}", "positive": f"p{i}", "negative": f"n{i}", "extra": i} for i in range(5)]


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of `data=ir_data` in a folder of files."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    return {**data("data=ir_data"), "path": str(tmp_path / "copy")}


def test_triples_of_a_copy_of_a_hub_data_set(copy, tmp_path):
    triples = [Triple(f"q{i}", f"p{i}", (f"n{i}",), "ir_data") for i in range(5)]
    assert read_triples(copy, "") == triples
    with pytest.raises(UserError, match="copy, split dev cannot be read"):
        read_triples({**copy, "split": "dev"}, "")
    (tmp_path / "copy" / "train.jsonl").write_text(json.dumps({**ROWS[0], "positive": " "}))
    with pytest.raises(UserError, match="copy, row 1 has no text as 'positive'"):
        read_triples(copy, "")


def test_without_a_network_the_data_set_and_the_mend_are_named_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the discard port: refused
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    naps = []
    monkeypatch.setattr(time, "sleep", naps.append)  # whatever else this machine does meanwhile
    with pytest.raises(UserError, match=r"yixuantt/ir_data, .* cannot be read: .*data.path=<folder>"):
        read_triples(data("data=ir_data"), "")
    assert sum(naps) < 10, "retries wait ever longer"
