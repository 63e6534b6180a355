"""Commands side by side: order, failures, a stop."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.errors import UserError
from studies.workers import Job, free_memory, need, places, run_jobs
from tests.started import ROOT

SCRIPT = """
import os, pathlib, sys
place, name, code = sys.argv[1:]
with open(place, "a") as file:
    file.write(f"{name} {os.getpid()}\\n")
sys.exit(int(code))
"""


@pytest.fixture
def script(tmp_path):
    """A job that notes its name and process, and leaves with a code."""
    file, place = tmp_path / "note.py", tmp_path / "noted"
    file.write_text(SCRIPT)

    def job(name, code=0, after=()):
        return Job(name, (str(file), str(place), name, str(code)), tuple(after))

    return job, lambda: [line.split() for line in place.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_jobs_wait_for_those_before_them_and_a_failed_one_stops_no_other(script, count, capsys):
    job, noted = script
    jobs = [job("late", after=["first"]), job("first"), job("wrong", code=2), job("never", after=["wrong"])]
    with pytest.raises(UserError, match=r"1 of 4 jobs failed \(wrong\)"):
        run_jobs(jobs, [""] * count, ["json"])
    lines = capsys.readouterr().out
    assert "wrong FAILED with exit code 2 after" in lines
    assert re.search(r"\[\d of 4\] late ended after", lines)
    names = [name for name, _ in noted()]
    assert sorted(names) == ["first", "late", "wrong"]
    assert names.index("first") < names.index("late")
    assert len({process for _, process in noted()}) == 3


def test_as_many_runs_as_a_gpu_holds_gpus_in_turn_and_no_more_than_cores():
    h200, small = 139 * 1024, need(135_000_000, 16_384)
    assert need(7_240_000_000, 4_096) == pytest.approx(50 * 1024, rel=0.05)  # docs/performance.md
    assert need(7_240_000_000, 16_384) == pytest.approx(126 * 1024, rel=0.15)
    assert places({}, small, 3) == ["", "", ""]
    assert places({"a": h200}, small, 16) == ["a"] * int(h200 / small)
    assert places({"a": 2 * small, "b": 3.5 * small, "c": 10}, small, 16) == ["a", "b", "c", "a", "b", "b"]
    assert places({"a": h200, "b": h200}, small, 3) == ["a", "b", "a"]


@pytest.mark.slow
def test_each_job_sees_its_gpu_alone(tmp_path):
    script, place = tmp_path / "note.py", tmp_path / "noted"
    script.write_text("import os, sys\nopen(sys.argv[1], 'a').write(os.environ['CUDA_VISIBLE_DEVICES'] + ' ')\n")
    run_jobs([Job(str(n), (str(script), str(place))) for n in range(5)], ["GPU-a", "GPU-b"], ["json"])
    assert {*place.read_text().split()} == {"GPU-a", "GPU-b"}


def test_gpus_are_those_that_this_process_sees(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, GPU-a, 1000'\necho '1, GPU-b, 2000'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert free_memory() == {"GPU-a": 1000, "GPU-b": 2000}
    for seen, found in (("1", ["GPU-b"]), ("GPU-b,", ["GPU-b"]), ("0, 1", ["GPU-a", "GPU-b"]), ("", []), ("-1", [])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
        assert [*free_memory()] == found
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-c1")
    tool.write_text("#!/bin/sh\necho '0, GPU-c1-d2, 1000'\necho '1, GPU-c2-d2, 2000'\n")
    assert free_memory() == {"GPU-c1-d2": 1000}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-e3")
    assert places(free_memory(), 500, 16) == [""], "one job at a time"
    tool.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    assert free_memory() == {}


STOPPED = """
from cli.errors import UserError
from studies.workers import Job, run_jobs
run_jobs([Job("long", ({place!r},))], [""], ["json"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_stop_reaches_what_runs(tmp_path, sent):
    place, process_id = tmp_path / "long.py", tmp_path / "id"
    place.write_text(f"import os, time\nopen({str(process_id)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    main = subprocess.Popen([sys.executable, "-c", STOPPED.format(place=str(place))], cwd=ROOT)
    _until(lambda: process_id.exists() and process_id.read_text())
    main.send_signal(sent)
    assert main.wait(300) == (128 + sent if sent == signal.SIGTERM else -sent)
    _until(lambda: not Path(f"/proc/{process_id.read_text()}/exe").exists())


def _until(true):
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    pytest.fail("A minute was not enough.")
