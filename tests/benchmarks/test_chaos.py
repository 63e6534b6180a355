"""A kill of a training run: nothing is lost. CHAOS_KILLS=20 makes twenty; the long form is the benchmark itself."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import pytest

from benchmarks.chaos import process
from benchmarks.chaos.__main__ import Kept, disturb
from benchmarks.chaos.process import Fault, Process
from benchmarks.chaos.strikes import Outcome, Trials
from tests.started import start

SLEEP = "import time; time.sleep(60)"
WITH_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"


KILLS = int(os.environ.get("CHAOS_KILLS", "1"))  # 20: the short form of the benchmark, about ten minutes on two cores


@pytest.mark.slow
def test_a_killed_run_ends_as_an_undisturbed_one(tmp_path):
    """Training alone; with CHAOS_KILLS=<number> evaluation, analysis and export too."""
    only = "infonce" if KILLS == 1 else "infonce,evaluate,analysis,export"
    done = start("-m", "benchmarks.chaos", f"kills={KILLS}", f"only={only}", f"work={tmp_path}")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| **all** |" in done.stdout
    (total,) = [line for line in done.stdout.splitlines() if line.startswith("| **all**")]
    _, _, trials, kills, equal, refused, lost, _ = (cell.strip() for cell in total.split("|"))
    assert (int(kills), int(lost)) == (KILLS, 0)
    assert int(trials) == int(equal) + int(refused)


@pytest.mark.slow
def test_words_are_checked():
    done = start("-m", "benchmarks.chaos", "only=infonse")
    assert done.returncode == 2
    assert "Nearest: infonce" in done.stderr


def test_signals_reach_what_was_begun_here_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MODULES", ())  # what they import plays no part
    (tmp_path / "program.py").write_text(WITH_CHILD)
    stranger = subprocess.Popen([sys.executable, "-c", SLEEP], cwd=tmp_path)
    ours = Process([str(tmp_path / "program.py")], tmp_path, tmp_path / "out", Fault("", str(tmp_path)))
    try:
        end = time.monotonic() + 60
        while not (others := ours.others()) and time.monotonic() < end:
            time.sleep(0.02)
        (child,) = others
        assert not ours.send(signal.SIGKILL, stranger.pid)
        assert not ours.send(signal.SIGKILL, 1)
        assert ours.send(signal.SIGKILL, child)
        assert ours.wait(60) is not None
        assert not ours.send(signal.SIGKILL)  # it is gone, and its number may be another's
        assert stranger.poll() is None
    finally:
        Process.stop_all()
        stranger.kill()
        stranger.wait()


def test_trials_go_on_from_the_outcomes_that_are_kept(tmp_path):
    """Lines of other questions are left; enough kills ask for no trial more."""
    kept, other = Kept(tmp_path / "outcomes.jsonl", "seed 1 of a"), Kept(tmp_path / "outcomes.jsonl", "seed 2 of a")
    one, two = (Outcome("a", what, "equal", "", kills) for what, kills in (("SIGKILL", 2), ("no space", 0)))
    kept.add(4, one, "code")
    other.add(0, two, "code")
    again = Kept(kept.path, kept.of)
    assert again.outcomes == {4: one}
    disturb(Trials(tmp_path, "code"), [], again, kills=2)
    assert [json.loads(line)["outcome"] for line in kept.path.read_text().splitlines()] == [asdict(one), asdict(two)]
