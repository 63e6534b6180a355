"""Two clones in different folders train a cell and score it: adapter, head and scores are equal byte for byte."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.started import ROOT, start
from tests.triples import write_triples

TRAIN = "train.py model.path=base pooler=multilayer attn=bi lora.dropout=0.1 data=jsonl data.path=pairs.jsonl"
TRAIN += " trainer.max_steps=2 trainer.global_batch_size=8 trainer.progress=false logging.tensorboard=false"
TRAIN += " data.validation=4 objective.warmup=1 max_length=32 accelerator=cpu runs_dir=runs study=two"
SCORE = "evaluate.py run=runs/two/multilayer-bi/seed0 tasks_dir=tasks progress=false"
ELSEWHERE = ("tests", "docs", ".ci", "benchmarks", "assets", "analysis", "representation")


def clone(folder: Path, base: Path) -> Path:
    """Copy what the commands need of this tree to `folder`, with base, pairs and a task beside it; return it."""
    words = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if not name.startswith(ELSEWHERE):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copytree(base, folder / "base")
    write_triples(folder / "pairs.jsonl")
    task = folder / "tasks" / "Graded"
    task.mkdir(parents=True)
    (task / "task.json").write_text(json.dumps({"name": "Graded", "type": "STS"}))
    rows = [("the sum of the array", f"returned {word} as sum", grade) for grade, word in enumerate(("type", "a", "b"))]
    lines = (json.dumps(dict(zip(("sentence1", "sentence2", "score"), row, strict=True))) for row in rows)
    (task / "test.jsonl").write_text("\n".join(lines))
    return folder


@pytest.mark.slow
def test_two_clones_train_and_score_to_equal_bytes(small_model, tmp_path):
    found = []
    for place in ("one", "somewhere else/other"):
        tree = clone(tmp_path / place, small_model)
        for command in (TRAIN, SCORE):
            done = start(*command.split(), cwd=tree)
            assert done.returncode == 0, done.stderr[-3000:]
        run = tree / "runs" / "two" / "multilayer-bi" / "seed0"
        manifest = json.loads((run / "manifest.json").read_text())
        (scores,) = (tree / "runs" / "two" / "scores").rglob("Graded.json")
        kept = {name: (run / name).read_bytes() for name in manifest["files"]}
        found.append({**kept, "scores": json.loads(scores.read_text())["scores"], "loss": manifest["loss"]})
    one, other = found
    assert {"adapter/adapter_model.safetensors", "head.safetensors", "scores"} <= one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
