"""An installation holds all that a command needs, and runs where no checkout is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.started import ROOT

NOT_INSTALLED = {"tests", "benchmarks", "docs", ".ci"}
BESIDE = {"conf", "assets", "train.py", "evaluate.py", "study.py"}
# The programs in turn, in one process: each would import Hydra again.
PROGRAMS = """
import io, json, sys
from contextlib import redirect_stdout
from cli import programs

for program, words in json.loads(sys.argv[1]).items():
    sys.argv[:] = [program, *words]
    with redirect_stdout(io.StringIO()) as text:
        programs.main()
    print(json.dumps(text.getvalue()))
"""
SHOWN = {
    "train": (["--cfg", "job", "pooler=multilayer"], "name: multilayer"),
    "evaluate": (["--help"], "benchmark"),
    "study": (["--help"], "seeds"),
    "analyse": (["--help"], "scores"),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that the wheel's files are unpacked to."""
    folder = tmp_path_factory.mktemp("site")
    words = ["setup.py", "-q", "build_py", "--build-lib", str(folder)]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True)
    return folder


def tracked():
    """The checkout's files that an installation needs, by their place in it."""
    words = ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    for path in map(Path, names.stdout.splitlines()):
        top = path.parts[0]
        if top in BESIDE:
            yield "pooling_ablation" / path
        elif path.parent.name and top not in NOT_INSTALLED:
            yield path


@pytest.mark.slow
def test_every_file_is_there_and_no_other(installed):
    there = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert there == set(tracked())


@pytest.mark.slow
def test_commands_run_away_from_the_checkout(installed, tmp_path):
    words = json.dumps({program: words for program, (words, _) in SHOWN.items()})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS, words],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = map(json.loads, done.stdout.splitlines())
    for (program, (_, shown)), text in zip(SHOWN.items(), said, strict=True):
        assert shown in text, program
    assert list(tmp_path.iterdir()) == []
