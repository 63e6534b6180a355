"""Write results folders of mteb's layout, as our evaluation does, and run the command inside the process."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.manifests import evaluation, manifest, seal, untrained

TASKS = {f"{kind}{k}": kind for kind in ("Retrieval", "STS") for k in range(8)}


def write_task(folder: Path, task: str, score: float | dict[str, float], split: str = "test") -> Path:
    """Write one TaskResult; `score` may be a dict subset -> score."""
    subsets = score if isinstance(score, dict) else {"default": score}
    entries = [{"main_score": s, "hf_subset": name, "languages": ["eng-Latn"]} for name, s in subsets.items()]
    value = {"task_name": task, "scores": {split: entries}, "mteb_version": "2.20.0", "dataset_revision": "r1"}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task}.json"
    path.write_text(json.dumps(value))
    return path


class Study:
    """Builds `<root>/results/<model>/<revision>/` as `evaluate.py` leaves it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        types = {task: {"type": kind, "main_score": "x", "source": "numpy"} for task, kind in TASKS.items()}
        root.mkdir(parents=True, exist_ok=True)
        (root / "tasks.json").write_text(json.dumps(types))

    def run(
        self,
        design: str,
        scores: dict[str, float],
        seed: int = 0,
        trained: bool = True,
        study: str = "s",
        **changes: Any,
    ) -> Path:
        """Write the scores and the manifest of one run. changes: as `manifests.manifest` takes them."""
        pooler, attn = design.split("-")
        model = f"{study}__{design}" + ("" if trained else "-untrained")
        folder = self.root / "results" / model / f"seed{seed}@{zlib.crc32(model.encode()):08x}"
        for task, score in scores.items():
            write_task(folder, task, score)
        value = manifest(pooler, attn, seed, **{"_study": study, "_evaluation": evaluation(list(scores)), **changes})
        value = value if trained else untrained(value) | {"evaluation": value["evaluation"]}
        (folder / "run").mkdir(parents=True, exist_ok=True)
        (folder / "run" / "manifest.json").write_text(json.dumps(seal(value)))
        (folder / "model_meta.json").write_text("{}")
        return folder


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path / "runs")


@pytest.fixture(scope="session")
def new_study(tmp_path_factory) -> Callable[[], Study]:
    """Return a function that makes an empty study, to be filled once for the tests of a file."""
    return lambda: Study(tmp_path_factory.mktemp("study") / "runs")


def analysed(words: tuple, asked: tuple[str, ...] | None) -> Any:
    """The result of override words, with the sections named alone; None: with all."""
    from analysis.analyse import analyse
    from analysis.cli import read_arguments
    from analysis.tables import sections

    named = {module.__name__.rpartition(".")[2]: module for module in sections.SHOWN}
    kept = tuple(named.values()) if asked is None else tuple(named[name] for name in named if name in asked)
    assert asked is None or len(kept) == len(asked), asked
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "SHOWN", kept)
        return analyse(read_arguments([str(word) for word in words]))


@pytest.fixture(scope="module")
def analyse_words(request) -> Callable:
    """Return a function: override words -> result. A file of tests on some sections names them in ASKED."""
    return lambda *words: analysed(words, getattr(request.module, "ASKED", None))


@pytest.fixture(scope="session")
def read_words() -> Callable:
    """As `analyse_words`, but without sections: what is read, chosen, refused and noted is settled before."""
    return lambda *words: analysed(words, ())


def spread(base: float, step: float = 0.001) -> dict[str, float]:
    """Scores on all tasks of `TASKS`: base, then a little more each."""
    return {task: round(base + step * k, 6) for k, task in enumerate(TASKS)}


@pytest.fixture(scope="session")
def spread_scores() -> Callable:
    return spread


@pytest.fixture(scope="session")
def task_writer() -> Callable:
    return write_task


@pytest.fixture
def planted(study: Study, spread_scores: Callable) -> Callable:
    """Return a function that writes a study of three designs, the second of which has the changes."""

    def write(seeds: tuple[int, ...] = (0,), **changes: Any) -> Study:
        for k, design in enumerate(("eos-causal", "lastlayer-bi", "multilayer-causal")):
            for seed in seeds:
                study.run(design, spread_scores(0.3 + 0.1 * k), seed=seed, **(changes if k == 1 else {}))
        return study

    return write
