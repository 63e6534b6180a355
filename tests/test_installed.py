"""An installation holds all that a command needs, and runs where no checkout is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.started import ROOT

NOT_INSTALLED = {"tests", "benchmarks", "docs", ".ci"}
BESIDE = {"conf", "assets", "train.py", "evaluate.py", "study.py"}
PROGRAM = "import sys; from cli.programs import {}; sys.argv[1:] = {}; {}()"


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
    assert {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()} == set(tracked())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words", "shown"),
    [
        ("train", ["--cfg", "job", "pooler=multilayer"], "name: multilayer"),
        ("evaluate", ["--help"], "benchmark"),
        ("study", ["--help"], "seeds"),
        ("analyse", ["--help"], "scores"),
    ],
)
def test_commands_run_away_from_the_checkout(installed, tmp_path, program, words, shown):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    code = PROGRAM.format(program, words, program)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert shown in done.stdout
    assert list(tmp_path.iterdir()) == []
