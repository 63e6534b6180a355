"""Several processes encode for one evaluation: the scores and vectors of one process, bit by bit."""

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation.crew import deal
from evaluation.embeddings.on_disk import KEYS, VECTORS
from tests.started import start


def vectors(cache: Path) -> dict[bytes, bytes]:
    """Key -> vector of all shards below a cache."""
    shards = [path.parent for path in cache.rglob(KEYS)]
    assert shards
    pairs = [(np.load(s / KEYS), np.load(s / VECTORS)) for s in shards]
    return {key: row.tobytes() for keys, rows in pairs for key, row in zip(keys.tolist(), rows, strict=True)}


def main_scores(results: Path) -> dict[str, list]:
    """Path below results -> its main scores."""
    files = [f for f in results.glob("results/*/*/*.json") if f.name not in ("model_meta.json", "manifest.json")]
    assert files
    return {
        str(f.relative_to(results)): [entry["main_score"] for entry in json.loads(f.read_text())["scores"]["test"]]
        for f in files
    }


@pytest.mark.slow
def test_two_processes_score_as_one(small_model, folder, tmp_path):
    """Readings of one pass, so that these are dealt out too; chunks of a few texts, so that both have some."""
    words = ["evaluate.py", f"model.path={small_model}", "precision=fp32", "max_length=48", "accelerator=cpu"]
    words += ["token_budget=200", "readings=[mean,eos]", f"tasks_dir={folder}", "tasks=[Asked,Graded]", "attn=bi"]
    words += ["embeddings=disk", "progress=false", "study=s"]
    said = []
    for devices in (1, 2):
        place = tmp_path / str(devices)
        done = start(*words, f"devices={devices}", f"results={place}", f"cache_dir={place / 'cache'}")
        assert done.returncode == 0, done.stderr[-3000:]
        said.append([line for line in done.stdout.splitlines() if " of " in line][:2])
    assert main_scores(tmp_path / "1") == main_scores(tmp_path / "2")
    one, two = (vectors(tmp_path / str(devices) / "cache") for devices in (1, 2))
    assert one == two


def test_chunks_go_to_the_process_with_the_fewest_tokens():
    hands = deal([9, 7, 5, 3, 1], 2)
    assert hands == [[0, 3, 4], [1, 2]], "12 and 1 tokens on the first, 12 on the second"
    assert deal([], 3) == [[], [], []]
