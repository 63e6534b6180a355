"""`make study`: what it starts, and what a mistake or an unfinished study makes of it. A stand-in plays Python."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")]
STAND_IN = """#!/bin/sh
call=$(printf '%s\\t' "$@")
echo "$call" >> "{calls}"
case "$*" in "study.py $FAILS"*) echo "error: planted" >&2; exit 2;; esac
"""


@pytest.fixture
def study(tmp_path):
    """Run `make study` with a Python that only writes down what it was asked for; return the outcome and the calls."""
    calls, python = tmp_path / "calls", tmp_path / "venv" / "bin" / "python"
    for folder in (python.parent, tmp_path / "runs" / "embedded" / "tables"):
        folder.mkdir(parents=True)
    python.write_text(STAND_IN.format(calls=calls))
    python.chmod(0o755)
    (tmp_path / "venv" / ".installed").touch()
    os.utime(tmp_path / "venv" / ".installed", (2**32 - 1,) * 2)  # newer than any source: nothing is installed

    def run(*words, fails="none", target="study"):
        words = ["make", target, f"VENV={tmp_path / 'venv'}", f"RUNS={tmp_path / 'runs'}", *words]
        clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "SEEDS", "JOBS")}
        done = subprocess.run(
            words, cwd=ROOT, env=clean | {"FAILS": fails}, capture_output=True, text=True, timeout=600, check=False
        )
        lines = calls.read_text().splitlines() if calls.exists() else []
        return done, [line.rstrip("\t").split("\t") for line in lines]

    return run


CELLS = "eos-causal,lastlayer-causal,lastlayer-bi,multilayer-causal,multilayer-bi,mean-causal,mean-bi"


def started(calls, program):
    return sum(" ".join(call).startswith(program) for call in calls)


@pytest.mark.parametrize(("words", "seeds"), [((), "[0,1,2]"), (("SEEDS=1", "JOBS=1"), "[0]")])
def test_each_design_with_each_seed(study, words, seeds):
    done, calls = study(*words)
    assert done.returncode == 0, done.stderr
    (call,) = [call for call in calls if call[0] == "study.py"]
    assert call[1:3] == [f"designs=[{CELLS}]", f"seeds={seeds}"]
    assert "JOBS=1" not in words or "jobs=1" in call
    assert "tables/report.html" in done.stdout
    assert "Entering directory" not in done.stdout, "the inner make is no news"


@pytest.mark.parametrize("word", ["SEEDS=0", "SEEDS=0,1", "SEEDS=", "JOBS=0", "JOBS=all"])
def test_a_number_that_is_none_is_refused_at_once(study, word):
    done, calls = study(word)
    assert done.returncode == 2
    assert f"{word} must be a whole number above 0" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not calls


def test_a_study_that_is_not_finished_is_not_compared(study):
    done, calls = study("SEEDS=2", fails="designs=[eos")
    assert done.returncode == 2
    assert not started(calls, "-m analysis"), "a comparison of half a study"


def only(calls, *words):
    """The one call that begins with these words."""
    (found,) = [call for call in calls if call[: len(words)] == list(words)]
    return found


@pytest.mark.parametrize(("seeds", "numbers"), [("1", "0"), ("3", "0,1,2")])
def test_the_tables_name_the_runs_of_the_study_and_no_others(study, tmp_path, seeds, numbers):
    done, calls = study(f"SEEDS={seeds}")
    assert done.returncode == 0, done.stderr
    assert f"with seed{'s' if ',' in numbers else ''} {numbers.replace(',', ' ')}." in done.stdout
    tables = [call for call in calls if call[:2] == ["-m", "analysis"]]
    assert len(tables) == 2
    for call in tables:
        assert call[3:5] == [f"models=[{CELLS}]", f"seeds=[{numbers}]"]
    audited = only(calls, "-m", "analysis.control")[2:]
    embedded = tmp_path / "runs" / "embedded"
    units = [(cell, seed) for seed in numbers.split(",") for cell in CELLS.split(",")]
    own = [f"{embedded}/{cell}/seed={seed}" for cell, seed in units]
    copies = [f"{embedded}/scores/results/embedded__{cell}*/seed={seed}@*" for cell, seed in units]
    assert sorted(audited) == sorted([*own, *copies])


def test_a_folder_of_runs_with_spaces_stays_whole(study, tmp_path):
    runs = tmp_path / "my runs (1)"
    (runs / "embedded" / "tables").mkdir(parents=True)
    done, calls = study(f"RUNS={runs}", "JOBS=1")
    assert done.returncode == 0, done.stderr
    assert f"runs_dir={runs}" in only(calls, "study.py")
    assert only(calls, "-m", "analysis.control")[2] == f"{runs}/embedded/eos-causal/seed=0"
    assert {call[2] for call in calls if call[:2] == ["-m", "analysis"]} == {f"scores={runs}/embedded/scores"}
    assert (runs / "embedded" / "tables" / "control.md").is_file()


def test_stages_are_trained_before_what_stands_on_them(study, tmp_path):
    done, calls = study("SEEDS=2", target="llm2vec")
    assert done.returncode == 0, done.stderr
    sweeps = [call[1:3] for call in calls if call[0] == "train.py"]
    assert sweeps == [[f"sweep={name}", "seed=0,1"] for name in ("llm2vec_mntp", "llm2vec_simcse", "llm2vec")]
    assert [call[0] for call in calls] == ["train.py"] * 3 + ["evaluate.py"] * 2 + ["-m"]
    scored = [call[1] for call in calls if call[0] == "evaluate.py"]
    assert scored == [f"run={tmp_path}/runs/llm2vec{stages}/*/seed=*" for stages in ("", ",stages=*")]


def test_designs_of_every_seed_are_scored_after_their_stages(study, tmp_path):
    done, calls = study("SEEDS=2", "JOBS=1", target="designs")
    assert done.returncode == 0, done.stderr
    trained = [call[1:] for call in calls if call[0] == "train.py"]
    words = [next(w for w in call if w.startswith(("sweep=", "design="))) for call in trained]
    names = ["sweep=llm2vec_mntp", "sweep=llm2vec_simcse", "sweep=designs", "design=echo_long", "sweep=designs_moe"]
    assert words == [*names, *names]
    assert [f"seed={k}" for k in (0, 1) for _ in names] == [
        next(w for w in call if w.startswith("seed=")) for call in trained
    ]
    place = f"{tmp_path}/runs/designs"
    scored = [call[1] for call in calls if call[0] == "evaluate.py"]
    assert scored == [
        f"run=['{place}/*/seed={k}','{place},[!o]*/*/seed={k}','{place},objective.*/*/seed={k}']" for k in (0, 1)
    ]
    assert calls[-1][:2] == ["-m", "analysis"]
