"""docs/extend: each page's files, added to a copy of the tree, are all that its commands need."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.started import start

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
EXTEND = ROOT / "docs" / "extend"
SOURCES = [path.parent.name for path in ROOT.glob("*/__init__.py")]
SOURCES += ["conf", "tests", "train.py", "evaluate.py", "pyproject.toml"]
BLOCK = re.compile(r"^## `([^`]+)`\n.*?^```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAIRS = "\n".join(f'{{"query": "add {n} and one", "positive": "the sum is {n + 1}"}}' for n in range(40))
SHORT = "data=jsonl data.path=pairs.jsonl data.validation=8 max_length=16"
SHORT += " trainer.max_steps=2 trainer.global_batch_size=8"


@pytest.fixture
def tree(request, tmp_path):
    """A copy of the tree with exactly the files of the page that the test names."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    (tmp_path / "pairs.jsonl").write_text(PAIRS)
    for path, code in BLOCK.findall((EXTEND / request.param).read_text(encoding="utf-8")):
        assert not (tmp_path / path).exists(), f"{path} is there without the page"
        (tmp_path / path).write_text(code, encoding="utf-8")
    return tmp_path


def page(name):
    return pytest.mark.parametrize("tree", [name], indirect=True, ids=[name])


def run(tree, line, code=0):
    """What a command prints that ends with `code`."""
    python, *words = shlex.split(line)
    done = start(*words, cwd=tree)
    assert (python, done.returncode) == ("python", code), done.stdout + done.stderr
    return done.stdout + done.stderr


def commands(name):
    """The commands of a page, in order."""
    return re.findall(r"^    (python .*?)(?:  .*)?$", (EXTEND / name).read_text(encoding="utf-8"), re.MULTILINE)


def config(tree, cell):
    """The configuration of the only run of that cell, which is finished."""
    (path,) = tree.glob(f"runs/*/{cell}/*/manifest.json")
    held = json.loads(path.read_text())
    assert held["status"] == "finished"
    return held["config"]


@page("pooler.md")
def test_a_pooler(tree, small_model):
    """Trained, and held to the contract under one attention: the page's command takes all."""
    train, contract = commands("pooler.md")
    run(tree, f"{train} {SHORT} model.path={small_model}")
    assert config(tree, "max-bi")["pooler"]["name"] == "max"
    assert re.search(r"\d+ passed", run(tree, f"{contract[:-3]} 'max-bi and not max-bi_last' -m 'not slow'"))


@page("objective.md")
def test_an_objective(tree, small_model):
    """Counted, held to its limits, and trained on cached states."""
    train = f"{commands('objective.md')[0]} {SHORT} model.path={small_model}"
    run(tree, f"{train} check=true")
    assert "must be a number, at least 1e-06" in run(tree, f"{train} objective.temperature=0", 2)
    run(tree, f"{train} pooler=lastlayer backbone.frozen=true")
    assert config(tree, "lastlayer-bi")["objective"]["bias"] == -10


@page("attention.md")
def test_an_attention_pattern(tree, small_model):
    """Proved at start-up, trained, and held to its limits."""
    (train,) = commands("attention.md")
    run(tree, f"{train} {SHORT} model.path={small_model}")
    assert config(tree, "mean-alternating")["attn"]["reach"] == 8
    assert "attn.reach=0 must be a whole number, at least 1" in run(tree, f"{train} attn.reach=0", 2)
