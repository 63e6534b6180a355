"""`make study`: which runs it starts, and what a mistake or a failing run makes of it. A stand-in plays Python."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")]
STAND_IN = """#!/bin/sh
echo "$*" > "{calls}/$(echo "$*" | tr ' /' '__')"
case "$*" in "train.py pooler=$FAILS "*) echo "error: planted" >&2; exit 2;; esac
"""


@pytest.fixture
def study(tmp_path):
    """Run `make study` with a Python that only writes down what it was asked for; return the outcome and the calls."""
    calls, python = tmp_path / "calls", tmp_path / "venv" / "bin" / "python"
    for folder in (calls, python.parent, tmp_path / "runs" / "embedded" / "tables"):
        folder.mkdir(parents=True)
    python.write_text(STAND_IN.format(calls=calls))
    python.chmod(0o755)
    (tmp_path / "venv" / ".installed").touch()
    os.utime(tmp_path / "venv" / ".installed", (2**32 - 1,) * 2)  # newer than any source: nothing is installed

    def run(*words, fails="none"):
        words = ["make", "study", f"VENV={tmp_path / 'venv'}", f"RUNS={tmp_path / 'runs'}", *words]
        clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "SEEDS", "JOBS")}
        done = subprocess.run(
            words, cwd=ROOT, env=clean | {"FAILS": fails}, capture_output=True, text=True, timeout=60, check=False
        )
        in_order = sorted(calls.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        return done, [file.read_text() for file in in_order]

    return run


def started(calls, program):
    return sum(call.startswith(program) for call in calls)


@pytest.mark.parametrize(("words", "runs"), [((), 5), (("SEEDS=3", "JOBS=1"), 15)])
def test_five_designs_a_seed(study, words, runs):
    done, calls = study(*words)
    assert done.returncode == 0, done.stderr
    assert started(calls, "train.py") == started(calls, "evaluate.py") == runs
    assert "tables/report.html" in done.stdout


def test_what_takes_longest_comes_first(study):
    """Training before scoring; or a core has nothing to do while the last run trains."""
    _, calls = study("JOBS=1")
    programs = [call.split()[0] for call in calls]
    assert programs[:10] == ["train.py"] * 5 + ["evaluate.py"] * 5


@pytest.mark.parametrize("word", ["SEEDS=0", "SEEDS=0,1", "SEEDS=", "JOBS=0", "JOBS=all"])
def test_a_number_that_is_none_is_refused_at_once(study, word):
    done, calls = study(word)
    assert done.returncode == 2
    assert f"{word} must be a whole number above 0" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not calls


def test_a_run_that_fails_fails_the_study_and_stops_no_other(study):
    done, calls = study("SEEDS=2", fails="lastlayer")
    assert done.returncode == 2
    assert "error: Not every run is finished" in done.stderr
    assert (started(calls, "train.py"), started(calls, "evaluate.py")) == (10, 6)
    assert not started(calls, "-m analysis"), "a comparison of half a study"
