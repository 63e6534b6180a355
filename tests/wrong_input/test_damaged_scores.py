"""Every file of results that the analysis reads, with every damage: one line that names the file and a remedy."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from analysis.control.audit import audit
from analysis.control.find_runs import find_runs
from analysis.report.parts import representation_parts
from analysis.scores.task_types import clusters_of
from analysis.settings import Settings
from tests.analysis.conftest import Study, analysed, spread
from tests.analysis.item_files import item_files
from tests.wrong_input.damages import faults

TASK = "STS3.json"
FACTORS = ("pooler", "attn")


def study(folder: Path) -> Study:
    made = Study(folder / "runs")
    for k, design in enumerate(("eos-causal", "mean-bi")):
        made.run(design, spread(0.3 + 0.1 * k))
    return made


def of_study(place: str) -> Callable:
    """A file of a study's scores."""

    def make(folder: Path):
        root = study(folder).root
        return next(iter(sorted(root.glob(place)))), partial(analysed, (f"scores={root}",), ())

    return make


def named(name: str, content: str, word: str) -> Callable:
    """A file that a word of the command names."""

    def make(folder: Path):
        root, path = study(folder).root, folder / name
        path.write_text(content)
        return path, partial(analysed, (f"scores={root}", f"{word}={path}"), ())

    return make


def table(name: str) -> Callable:
    def make(folder: Path):
        text = "model,task,score\n" + "".join(
            f"{m},STS1{k},0.{k}{j}\n" for j, m in enumerate("ab") for k in range(2, 7)
        )
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        return folder / name, partial(analysed, (f"scores={folder / name}",), ())

    return make


def items(folder: Path):
    made = study(folder)
    item_files(made, {design: [0.1 * k for k in range(9)] for design in ("eos-causal", "mean-bi")})
    path = next(iter(sorted(made.root.glob("predictions/*/*/*.json"))))
    return path, partial(analysed, (f"scores={made.root}",), ("items",))


def audited(folder: Path):
    root = study(folder).root
    path = next(iter(sorted(root.glob("results/*/*/run/manifest.json"))))
    return path, lambda: audit(find_runs([str(root)], FACTORS), FACTORS, ())


def clustered(folder: Path):
    path = folder / "cluster.json"
    path.write_text(json.dumps({"one": "here"}))
    return path, partial(clusters_of, str(path), ["one", "two"])


def represented(folder: Path):
    path = folder / "answers.json"
    path.write_text(json.dumps({"version": 1, "answers": []}))
    return path, partial(representation_parts, Settings((folder,), representation=folder))


READERS = {
    "score": of_study(f"results/*/*/{TASK}"),
    "manifest": of_study("results/*/*/run/manifest.json"),
    "tasks.json": of_study("tasks.json"),
    "task_types": named("types.json", json.dumps({"One": "Retrieval"}), "task_types"),
    "claims": named("claims.yaml", "- {claim: c, ahead: mean-bi, behind: eos-causal}\n", "claims"),
    "rename": named("rename.yaml", "eos-causal: Model 1\n", "rename"),
    "scores.csv": table("scores.csv"),
    "scores.csv.gz": table("scores.csv.gz"),
    "items": items,
    "audit": audited,
    "cluster": clustered,
    "representation": represented,
}
NAMES = {"score": ("STS3",), "rename": ("rename=",), "manifest": ("seed=0@",), "audit": ("seed=0@",)}
NO_FILE = ("absent", "a folder", "a pipe", "a device without end", "a link to itself", "a link to nothing")
FINE = {"tasks.json": ("absent",), "items": NO_FILE}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file(tmp_path, name):
    found = faults(tmp_path, READERS[name], NAMES.get(name, ()), FINE.get(name, ()))
    assert not found, "\n".join(found)
