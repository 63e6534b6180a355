"""Several processes encode for one evaluation: the scores and vectors of one process, bit by bit."""

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation.crew import deal
from evaluation.embeddings.on_disk import KEYS, VECTORS
from tests.processes import run_together, started_by, torchrun
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


@pytest.fixture
def words(small_model, folder):
    """Readings of one pass, so that these are dealt out too; chunks of a few texts, so that each process has some."""
    words = [f"model.path={small_model}", "precision=fp32", "max_length=48", "accelerator=cpu", "token_budget=200"]
    words += ["readings=[mean,eos]", f"tasks_dir={folder}", "tasks=[Asked,Graded]", "attn=bi", "embeddings=disk"]
    return [*words, "progress=false", "study=s"]


def places(folder: Path) -> list[str]:
    """Words for results and vectors of their own."""
    return [f"results={folder}", f"cache_dir={folder / 'cache'}"]


@pytest.mark.slow
def test_two_processes_score_as_one_whatever_starts_them(words, tmp_path):
    """evaluate.py itself, or torchrun."""
    one, two, by_torchrun = (tmp_path / name for name in ("one", "two", "torchrun"))
    for folder, devices in ((one, 1), (two, 2)):
        done = start("evaluate.py", *words, f"devices={devices}", *places(folder))
        assert done.returncode == 0, done.stderr[-3000:]
    said = run_together(started_by(torchrun, 1, 2, "evaluate.py", [*words, *places(by_torchrun)]))
    assert said.count("Encoding in 2 processes.") == 1
    for folder in (two, by_torchrun):
        assert main_scores(folder) == main_scores(one)
        assert vectors(folder / "cache") == vectors(one / "cache")


def test_chunks_go_to_the_process_with_the_fewest_tokens():
    hands = deal([9, 7, 5, 3, 1], 2)
    assert hands == [[0, 3, 4], [1, 2]], "12 and 1 tokens on the first, 12 on the second"
    assert deal([], 3) == [[], [], []]
