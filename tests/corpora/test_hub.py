"""`data=ir_data`: local copies in every form that the datasets library reads, and quick errors without a network."""

import json
import time

import datasets
import pytest
from huggingface_hub import constants

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.readers import read_triples
from corpora.triples import Triple

ROWS = [{"query": f"q{i}", "positive": f"p{i}", "negative": f"n{i}", "extra": i} for i in range(5)]
TRIPLES = [Triple(f"q{i}", f"p{i}", (f"n{i}",), "ir_data") for i in range(5)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")


def read(path, *overrides) -> list[Triple]:
    data = plain(composed("train", ["data=ir_data", *overrides]))["data"]
    return read_triples({**data, "path": path and str(path)}, "unused")


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def test_a_folder_of_files(tmp_path):
    write(tmp_path / "copy" / "train.jsonl", ROWS)
    assert read(tmp_path / "copy") == TRIPLES


def test_a_data_set_saved_to_disk(tmp_path):
    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "saved")
    assert read(tmp_path / "saved") == TRIPLES


def test_a_bad_row_is_named(tmp_path):
    write(tmp_path / "copy" / "train.jsonl", [*ROWS, {**ROWS[0], "positive": " "}])
    with pytest.raises(UserError, match="copy, row 6 has no text as 'positive'"):
        read(tmp_path / "copy")


def test_a_missing_column_is_named_with_its_nearest(tmp_path):
    write(tmp_path / "copy" / "train.jsonl", [{"query": "q", "postive": "p"}])
    with pytest.raises(UserError, match="has no 'positive'; nearest is 'postive'"):
        read(tmp_path / "copy")


def test_a_missing_split_is_named(tmp_path):
    write(tmp_path / "copy" / "train.jsonl", ROWS)
    with pytest.raises(UserError, match="split dev cannot be read"):
        read(tmp_path / "copy", "data.split=dev")


@pytest.mark.parametrize("way", ["switched off", "no host"])
def test_without_a_network_the_data_set_and_the_mend_are_named_at_once(monkeypatch, way):
    if way == "switched off":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the discard port: refused
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
    naps = []
    monkeypatch.setattr(time, "sleep", naps.append)  # whatever else this machine does meanwhile
    with pytest.raises(UserError, match=r"yixuantt/ir_data, .* cannot be read: .*data.path=<folder>"):
        read(None)
    assert sum(naps) < 10, "retries wait ever longer"
    assert not datasets.config.HF_HUB_OFFLINE
