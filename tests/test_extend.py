"""docs/extend: each page's files, added to a copy of the tree, are all that its commands need."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from encoders.fast.compile_once import kernels
from tests.started import start

ROOT = Path(__file__).resolve().parent.parent
EXTEND = ROOT / "docs" / "extend"
SOURCES = [path.parent.name for path in ROOT.glob("*/__init__.py")]
SOURCES += ["conf", "tests", "train.py", "evaluate.py", "pyproject.toml"]
BLOCK = re.compile(r"^## `([^`]+)`\n.*?^```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAIRS = "\n".join(f'{{"query": "add {n} and one", "positive": "the sum is {n + 1}"}}' for n in range(40))
SHORT = "data=jsonl data.path=pairs.jsonl data.validation=8 max_length=16"
SHORT += " trainer.max_steps=2 trainer.global_batch_size=8"


@pytest.fixture
def short(small_model):
    """Words of train.py for two steps of a small model."""
    return f"{SHORT} model.path={small_model}"


@pytest.fixture
def tree(request, tmp_path):
    """A copy of the tree with exactly the files of the page that the test names.

    What is compiled is copied too: numba takes longer for the kernels than all commands of a page.
    """
    kernels()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
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


# One process of the tree for commands that run files, one after another: each would import everything again.
IN_TURN = """
import io, json, runpy, sys
from contextlib import redirect_stderr, redirect_stdout

said = []
for words in json.loads(sys.argv[1]):
    sys.argv[:] = words
    with redirect_stdout(io.StringIO()) as text, redirect_stderr(text):
        try:
            runpy.run_path(words[0], run_name="__main__")
            code = 0
        except SystemExit as left:
            code = left.code or 0
    said.append((code, text.getvalue()))
print(json.dumps(said))
"""


def run(tree, words):
    """What a command prints that ends well."""
    done = started(tree, *_after_python(words))
    return done.stdout + done.stderr


def run_in_turn(tree, *lines):
    """The exit code of each command, and what it prints."""
    done = started(tree, "-c", IN_TURN, json.dumps([_after_python(line) for line in lines]))
    return json.loads(done.stdout.splitlines()[-1])


def started(tree, *words):
    done = start(
        *words,
        cwd=tree,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def _after_python(line):
    python, *words = shlex.split(line)
    assert python == "python"
    return words


def commands(name):
    """The commands of a page, in order."""
    return re.findall(r"^    (python .*?)(?:  .*)?$", (EXTEND / name).read_text(encoding="utf-8"), re.MULTILINE)


def manifest(runs, cell):
    """The manifest of the only run below `runs`, which is of that cell and finished."""
    (path,) = runs.glob("*/*/*/manifest.json")
    held = json.loads(path.read_text())
    assert (path.parent.parent.name, held["status"]) == (cell, "finished")
    return held


@pytest.mark.slow
@page("pooler.md")
def test_a_pooler(tree, short):
    """Trained, and held to the contract under one attention: the page's command takes all."""
    train, contract = commands("pooler.md")
    run(tree, f"{train} {short}")
    assert manifest(tree / "runs", "max-bi")["config"]["pooler"]["name"] == "max"
    assert contract.endswith("-k max")
    assert re.search(r"\d+ passed", run(tree, f"{contract[:-3]} 'max-bi and not max-bi_last' -m 'not slow'"))


@pytest.mark.slow
@page("objective.md")
def test_an_objective(tree, short):
    """Counted, held to its limits and checks, trained with LoRA and on cached states, and found finished."""
    (train,) = commands("objective.md")
    train = f"{train} {short}"
    expected = [
        ("check=true", 0, "2 of 8 queries (16 texts): 16 examples seen"),
        ("objective.temperature=0", 2, "objective.temperature=0 must be a number, at least 1e-06"),
        ("trainer.global_batch_size=1", 2, "A batch of one has no negatives"),
        ("objective.name=sigmoids", 2, "There is no objective 'sigmoids'. Nearest: sigmoid"),
    ]
    cells = {"mean-bi": "", "lastlayer-bi": "pooler=lastlayer backbone.frozen=true "}
    for cell, words in cells.items():
        trained = f"{words}runs_dir=runs/{cell}"
        expected += [(trained, 0, "held-out nDCG@10"), (trained, 0, "is finished; nothing to do")]
    said = run_in_turn(tree, *(f"{train} {words}" for words, *_ in expected))
    for (words, code, message), (found, text) in zip(expected, said, strict=True):
        assert (found, message in text) == (code, True), (words, text)
    for cell in cells:
        made = manifest(tree / "runs" / cell, cell)
        assert (made["steps"], made["config"]["objective"]["bias"]) == (2, -10)
        assert "training.objectives.sigmoid" in made["code"]["chosen"]["objective"]
        assert made["held_out"]["before"].keys() == made["held_out"]["after"].keys() == {"nDCG@10"}
        assert 16 <= made["pairs_compared"] <= 2 * 8**2, "two batches of eight queries and eight documents"


# Every kernel is proved when it is loaded; what each layer sees is compared with what is written here.
MASKS = """
import torch
from cli.compose import composed, plain
from encoders.loading import build_encoder
from encoders.precision import PRECISIONS

n = torch.arange(12)
near = torch.tensor([[abs(q - k) <= 8 for k in range(12)] for q in range(12)])
for kernel in ("eager", "sdpa", "unpadded"):
    words = ["attn=alternating", "attn.reach=8", "max_length=32", "accelerator=cpu"]
    words += [f"model.attn_implementation={kernel}"]
    encoder = build_encoder(plain(composed("train", words)), PRECISIONS["fp32"], torch.device("cpu"))
    seen = [m.sees(n[:, None], n) for m in encoder.backbone.modules() if hasattr(m, "sees")]
    assert [bool(s.all()) for s in seen] == [True, False, False] * 2
    assert all(s.all() or torch.equal(s, near) for s in seen)
print("as written")
"""


@pytest.mark.slow
@page("attention.md")
def test_an_attention_pattern(tree, short):
    """Counted, proved in every kernel, trained, and held to its limits."""
    (train,) = commands("attention.md")
    (tree / "masks.py").write_text(MASKS)
    lines = [f"{train} {short} check=true", "python masks.py", f"{train} {short}", f"{train} attn.reach=0"]
    counted, proved, trained, refused = run_in_turn(tree, *lines)
    assert (counted[0], proved[0], trained[0], refused[0]) == (0, 0, 0, 2), trained
    assert "attn=alternating" in counted[1]
    assert proved[1].startswith("as written")
    assert manifest(tree / "runs", "mean-alternating")["config"]["attn"]["reach"] == 8
    assert "attn.reach=0 must be a whole number, at least 1" in refused[1]


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
