"""This tree and a copy in another folder train a cell: adapter, head and all other files are equal byte for byte."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.started import ROOT, start
from tests.triples import write_triples

TRAIN = "train.py model.path=base pooler=multilayer attn=bi lora.dropout=0.1 data=jsonl data.path=pairs.jsonl"
TRAIN += " trainer.max_steps=2 trainer.global_batch_size=8 trainer.progress=false logging.tensorboard=false"
TRAIN += " experiment=bundled"
TRAIN += " data.validation=4 objective.warmup=1 max_length=32 accelerator=cpu runs_dir=runs study=two"
ELSEWHERE = ("tests", "docs", ".ci", "benchmarks", "assets", "analysis", "representation", "evaluation")


def clone(folder: Path) -> Path:
    """Copy what the commands need of this tree to `folder`; return it."""
    words = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if not name.startswith(ELSEWHERE):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.mark.slow
def test_two_clones_train_to_equal_bytes(small_model, tmp_path, monkeypatch):
    found, other = [], clone(tmp_path / "somewhere else" / "other")
    (tmp_path / "one").mkdir()
    for place, tree in ((tmp_path / "one", None), (other, other)):
        shutil.copytree(small_model, place / "base")
        write_triples(place / "pairs.jsonl")
        monkeypatch.chdir(place)
        done = start(*TRAIN.split(), cwd=tree)
        assert done.returncode == 0, done.stderr[-3000:]
        run = place / "runs" / "two+experiment-bundled" / "multilayer-bi" / "seed0"
        manifest = json.loads((run / "manifest.json").read_text())
        kept = {name: (run / name).read_bytes() for name in manifest["files"]}
        found.append({**kept, "loss": manifest["loss"]})
    one, other = found
    assert {"adapter/adapter_model.safetensors", "head.safetensors"} <= one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
