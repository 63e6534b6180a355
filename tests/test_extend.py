"""docs/extend: each page's files, added to a copy of the tree, are all that its commands need."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.started import start

ROOT = Path(__file__).resolve().parent.parent
EXTEND = ROOT / "docs" / "extend"
SOURCES = [path.parent.name for path in ROOT.glob("*/__init__.py")]
SOURCES += ["conf", "tests", "train.py", "evaluate.py", "pyproject.toml"]
BLOCK = re.compile(r"^## `([^`]+)`\n.*?^```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAIRS = "\n".join(f'{{"query": "add {n} and one", "positive": "the sum is {n + 1}"}}' for n in range(40))
SHORT = (
    "data=jsonl data.path=pairs.jsonl data.validation=8 trainer.max_steps=2 trainer.global_batch_size=8 max_length=16"
)


@pytest.fixture
def tree(request, tmp_path):
    """A copy of the tree with exactly the files of the page that the test names."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    (tmp_path / "pairs.jsonl").write_text(PAIRS)
    files = BLOCK.findall((EXTEND / request.param).read_text(encoding="utf-8"))
    for path, code in files:
        assert not (tmp_path / path).exists(), f"{path} is there without the page"
        (tmp_path / path).write_text(code, encoding="utf-8")
    return tmp_path


def page(name):
    return pytest.mark.parametrize("tree", [name], indirect=True, ids=[name])


def run(tree, words):
    """What a command prints that must succeed."""
    python, *rest = shlex.split(words, comments=True)
    assert python == "python"
    done = start(*rest, cwd=tree, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def commands(name):
    """The commands of a page, in order."""
    return re.findall(r"^    (python .*?)(?:  .*)?$", (EXTEND / name).read_text(encoding="utf-8"), re.MULTILINE)


def manifest(tree, cell):
    """The manifest of the only run, which is of that cell and finished."""
    (path,) = tree.glob("runs/*/*/*/manifest.json")
    held = json.loads(path.read_text())
    assert (path.parent.parent.name, held["status"]) == (cell, "finished")
    return held


@pytest.mark.slow
@page("pooler.md")
def test_a_pooler(tree):
    train, contract = commands("pooler.md")
    run(tree, f"{train} {SHORT}")
    assert manifest(tree, "max-bi")["config"]["pooler"]["name"] == "max"
    assert re.search(r"\d+ passed", run(tree, f"{contract} -m 'not slow'"))


@pytest.mark.slow
@page("statistic.md")
def test_a_statistic(tree):
    lead = {"first": 0, "second": 0.04, "third": -0.02}  # a level for each model, the tasks apart
    rows = [f"{m},Task{n},Retrieval,{0.4 + n / 50 + more:.2f}" for m, more in lead.items() for n in range(8)]
    (tree / "scores.csv").write_text("\n".join(["model,task,type,score", *rows]))
    (analyse,) = commands("statistic.md")
    assert "Tasks won" in run(tree, analyse)
    for kind in ("md", "tex"):
        assert "Tasks won" in (tree / "tables" / f"table.{kind}").read_text()
    assert (tree / "tables" / "wins.csv").read_text().splitlines()[1].startswith("first,second,1.0,0.63")
