"""Folders of models and of runs, every file of them with every damage: one line that names the file and a remedy."""

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from cli.errors import UserError
from encoders.backbone import load_tokenizer
from encoders.loading import load_run, loaded, untrained
from records.manifest import read_manifest
from tests.encoders.test_checkpoint import model_of
from tests.started import ROOT
from tests.triples import quick_run, write_triples
from tests.wrong_input.damages import faults
from training.run import train_run


@pytest.fixture(scope="module")
def trained(compose_cell, tmp_path_factory) -> tuple[Path, dict]:
    """The folder and configuration of a run of one step, with an adapter and a head."""
    folder = tmp_path_factory.mktemp("trained")
    words = quick_run(write_triples(folder / "triples.jsonl"), steps=1)
    cfg, run = compose_cell("lastlayer", "bi", *words), folder / "s" / "lastlayer-bi" / "seed0"
    train_run(cfg, run)
    return run, cfg


MODEL = ("config.json", "model.safetensors", "tokenizer.json")


@pytest.mark.parametrize("file", MODEL)
def test_a_damaged_model(tmp_path, small_model, compose_cell, file):
    def make(folder):
        model = shutil.copytree(small_model, folder / "model")
        cfg = compose_cell("mean", "bi")
        cfg["model"]["path"] = str(model)
        return model / file, lambda: untrained(cfg).encode(["the sum"])

    found = faults(tmp_path, make, names=("model",))
    assert not found, "\n".join(found)


RUN = ("manifest.json", "head.safetensors", "adapter/adapter_model.safetensors", "adapter/adapter_config.json")


@pytest.mark.parametrize("file", RUN)
def test_a_damaged_run(tmp_path, trained, file):
    run, _ = trained

    def make(folder):
        copy = shutil.copytree(run, folder / "s" / "lastlayer-bi" / "seed0")
        return copy / file, lambda: load_run(copy, read_manifest(copy)["config"]).encode(["the sum"])

    found = faults(tmp_path, make, names=("seed0",))
    assert not found, "\n".join(found)


def test_a_tokenizer_of_a_larger_model(tmp_path, small_model):
    model = shutil.copytree(small_model, tmp_path / "model")
    for file in (ROOT / "assets" / "tiny").glob("tokenizer*"):
        shutil.copy(file, model)
    with pytest.raises(UserError, match=r"gives tokens up to \d+, and the model has 320: .* another model\. Put"):
        load_tokenizer(model_of(model))


def test_a_run_is_loaded_on_the_base_that_it_was_trained_on(tmp_path, small_model, compose_cell):
    """Weights of the same shapes in the same place, or another tokenizer, are another base."""
    base, run = shutil.copytree(small_model, tmp_path / "base"), tmp_path / "s" / "mean-bi" / "seed0"
    words = quick_run(write_triples(tmp_path / "triples.jsonl"), steps=1)
    cfg = compose_cell("mean", "bi", *words, f"model.path='{base}'")
    train_run(cfg, run)
    weights, tokenizer = base / "model.safetensors", base / "tokenizer.json"
    before = load_run(run, cfg).encode(["the sum"])
    whole = load_file(weights)
    save_file({name: 1.05 * tensor for name, tensor in whole.items()}, weights, {"format": "pt"})
    with pytest.raises(UserError, match=r"mean-bi/seed0 was trained on another base model"):
        load_run(run, cfg)
    save_file(whole, weights, {"format": "pt"})
    text = tokenizer.read_text()
    tokenizer.write_text(text + "\n")
    with pytest.raises(UserError, match=r"another tokenizer \(tokenizer_sha256\)"):
        load_run(run, cfg)
    tokenizer.write_text(text)
    assert (load_run(run, cfg).encode(["the sum"]) == before).all()


@pytest.fixture
def hub(tmp_path, small_model, monkeypatch):
    """The local cache of the hub with two commits of who/what; hub(c) makes c the newest and returns the whole name."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository = tmp_path / "hub" / "models--who--what"
    for commit, scale in (("a" * 40, 1), ("b" * 40, 1.05)):
        weights = shutil.copytree(small_model, repository / "snapshots" / commit) / "model.safetensors"
        save_file({name: scale * x for name, x in load_file(weights).items()}, weights, {"format": "pt"})
    (repository / "refs").mkdir()

    def newest(commit):
        (repository / "refs" / "main").write_text(commit)
        return repository / "snapshots" / commit

    return newest


def test_a_run_keeps_to_the_commit_of_the_hub_that_it_was_trained_on(hub, tmp_path, compose_cell):
    run, trained_on = tmp_path / "s" / "mean-bi" / "seed0", hub("a" * 40)
    words = quick_run(write_triples(tmp_path / "triples.jsonl"), steps=1)
    cfg = compose_cell("mean", "bi", *words, "model.path=who/what")
    train_run(cfg, run)
    assert read_manifest(run)["base_revision"] == "a" * 40
    before, start = load_run(run, cfg), loaded(cfg, run / "start")
    hub("b" * 40)
    for found, was in ((load_run(run, cfg), before), (loaded(cfg, run / "start"), start)):
        assert found.fingerprint == was.fingerprint
        assert (found.encode(["the sum"]) == was.encode(["the sum"])).all()
    named, newest = (
        untrained(compose_cell("mean", "bi", "model.path=who/what", *further)).encode(["the sum"])
        for further in (["model.revision=" + "a" * 40], [])
    )
    assert (named == start.encode(["the sum"])).all()
    assert (named != newest).any()
    shutil.copy(hub("b" * 40) / "model.safetensors", trained_on)
    for folder in (run, run / "start"):
        with pytest.raises(UserError, match="seed0 was trained on another base model"):
            loaded(cfg, folder)


def test_a_revision_that_there_is_not(hub, compose_cell, small_model):
    hub("a" * 40)
    with pytest.raises(UserError, match="'who/what', or this revision, is not in the local cache"):
        untrained(compose_cell("mean", "bi", "model.path=who/what", "model.revision=" + "c" * 40))
    with pytest.raises(UserError, match=r"model\.revision=x is a commit of a hub model, and .* is a folder"):
        untrained(compose_cell("mean", "bi", f"model.path='{small_model}'", "model.revision=x"))
