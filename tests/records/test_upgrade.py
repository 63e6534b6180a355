"""A run from before "House" (9eb71ed): its manifest, as that version wrote it, is read with the meaning it had."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.chaos.commands import WORDS, write_inputs
from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import load_run
from records.atomic import write_json
from records.identity import BASE
from records.manifest import sealed
from records.run_folder import RunFolder
from training.run import train_run

HELD = Path(__file__).with_name("manifest_9eb71ed.json")
SAME = ["pooler=lastlayer", "attn=bi", "study=older", "model.path=base", "data=jsonl", "data.path=pairs.jsonl"]
SAME += ["data.validation=4", "max_length=16", "precision=fp32", "objective.warmup=1", "logging.tensorboard=false"]
SAME += [f"trainer.{word}" for word in ("max_steps=2", "global_batch_size=8", "progress=false")]
SAME += ["runs_dir=runs", "cache_dir=cache"]  # the words that it was trained with


@pytest.fixture
def folder(tmp_path):
    shutil.copy(HELD, tmp_path / "manifest.json")
    return RunFolder(tmp_path)


def test_its_seal_holds_and_what_was_renamed_has_its_new_name(folder):
    written, read = json.loads(HELD.read_text()), folder.manifest()
    assert read["config"].pop("token_choice") == written["config"].pop("reading")
    assert read == written


def test_a_changed_figure_of_it_is_refused_by_name(folder):
    manifest = json.loads(HELD.read_text())
    write_json(folder.manifest_path, {**manifest, "loss": 1.0})
    with pytest.raises(UserError, match=r"manifest\.json was edited by hand"):
        folder.manifest()


def test_the_command_that_trained_it_is_refused_by_the_keys_that_are_others_now(folder):
    """What attention and objective are is said by other keys today, so nothing is trained on top of it."""
    keys = (
        r"attn\.is_causal: False -> absent; objective\.run: training\.contrastive\.finetune -> absent; pooler\.query: "
    )
    with pytest.raises(UserError, match=rf"holds a run of another configuration \({keys}absent -> fixed\)"):
        folder.claim(plain(composed("train", SAME)))


@pytest.mark.slow
def test_its_configuration_gives_the_vectors_of_todays(tmp_path, monkeypatch):
    """Adapter and head of a run of today, once under its own manifest and once under the held one."""
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    run = RunFolder(tmp_path / "run")
    train_run(plain(composed("train", SAME)), run)
    found = []
    for held in (run.manifest(), json.loads(HELD.read_text()) | {key: run.manifest()[key] for key in BASE}):
        write_json(run.manifest_path, sealed(held))
        found.append(load_run(run.path, run.manifest()["config"]).encode([f"the {word}" for word in WORDS], "find"))
    assert np.array_equal(*found)
    assert np.ptp(found[0], axis=0).max() > 0.01
