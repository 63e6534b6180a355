"""docs/extend.md: each section's files, added to a copy of the tree, are all that its commands need."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from records.manifest import code
from tests.started import start

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
SECTIONS = dict(
    re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", (ROOT / "docs/extend.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
)
SOURCES = [path.parent.name for path in ROOT.glob("*/__init__.py")]
SOURCES += ["conf", "tests", "train.py", "evaluate.py", "pyproject.toml"]
BLOCK = re.compile(r"^### `([^`]+)`\n.*?^```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAIRS = "\n".join(f'{{"query": "add {n} and one", "positive": "the sum is {n + 1}"}}' for n in range(40))
SHORT = "data=jsonl data.path=pairs.jsonl data.validation=8 max_length=16"
SHORT += " experiment=bundled trainer.max_steps=2 trainer.global_batch_size=8"


@pytest.fixture
def tree(request, tmp_path):
    """A copy of the tree with exactly the files of the section that the test names."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    (tmp_path / "pairs.jsonl").write_text(PAIRS)
    for path, text in BLOCK.findall(SECTIONS[request.param]):
        assert not (tmp_path / path).exists(), f"{path} is there without the section"
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def section(name):
    return pytest.mark.parametrize("tree", [name], indirect=True, ids=[name])


def run(tree, line, status=0):
    """What a command prints that ends with `status`."""
    python, *words = shlex.split(line)
    done = start(*words, cwd=tree)
    assert (python, done.returncode) == ("python", status), done.stdout + done.stderr
    return done.stdout + done.stderr


def commands(name):
    """The commands of a section, in order."""
    return re.findall(r"^    (python .*?)(?:  .*)?$", SECTIONS[name], re.MULTILINE)


def manifest(tree, cell):
    """Of the only run of that cell, which is finished."""
    (path,) = tree.glob(f"runs/*/{cell}/*/manifest.json")
    held = json.loads(path.read_text())
    assert held["status"] == "finished"
    return held


@section("A pooler")
def test_a_pooler(tree, small_model):
    """Trained, and held to the contract under one attention: the section's command takes all."""
    train, contract = commands("A pooler")
    run(tree, f"{train} {SHORT} model.path={small_model}")
    held = manifest(tree, "max-bi")
    assert held["config"]["pooler"]["name"] == "max"
    assert held["code"]["sha256"] == code()["sha256"], "the new file leaves runs from before comparable"
    assert re.search(r"\d+ passed", run(tree, f"{contract[:-3]} 'max-bi and not max-bi_last' -m 'not slow'"))


@section("An objective")
def test_an_objective(tree, small_model):
    """Counted, held to its limits, and trained on cached states."""
    train = f"{commands('An objective')[0]} {SHORT} model.path={small_model}"
    run(tree, f"{train} check=true")
    assert "must be a number, at least 1e-06" in run(tree, f"{train} objective.temperature=0", 2)
    run(tree, f"{train} pooler=lastlayer backbone.frozen=true")
    assert manifest(tree, "lastlayer-bi")["config"]["objective"]["bias"] == -10


@section("An attention pattern")
def test_an_attention_pattern(tree, small_model):
    """Proved at start-up, trained, and held to its limits."""
    (train,) = commands("An attention pattern")
    run(tree, f"{train} {SHORT} model.path={small_model}")
    assert manifest(tree, "mean-alternating")["config"]["attn"]["reach"] == 8
    assert "attn.reach=0 must be a whole number, at least 1" in run(tree, f"{train} attn.reach=0", 2)


@section("A statistic and its table")
def test_a_statistic(tree):
    """In its place, the table is printed and its file has every digit."""
    sections = tree / "analysis" / "tables" / "sections.py"
    sections.write_text(
        sections.read_text()
        .replace("    sensitivity,\n)", "    sensitivity,\n    wins,\n)")
        .replace("SHOWN = (", "SHOWN = (wins, ")
    )
    one = [f"a,Task{n},STS,{0.5 + n % 2 / 10}" for n in range(10)]
    other = [f"b,Task{n},STS,{0.5 + (n + 1) % 2 / 10}" for n in range(10)]
    (tree / "scores.csv").write_text("\n".join(["model,task,type,score", *one, *other]))
    (command,) = commands("A statistic and its table")
    assert "Tasks won" in run(tree, f"{command} allow=[manifest]")
    header, row = (tree / "tables" / "wins.csv").read_text().splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=True))["share"] == "0.5"
