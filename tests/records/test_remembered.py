"""Digests of large files are made once per machine, and anew whenever a file is not the one it was."""

import hashlib
import json
import os
import subprocess
import sys
import time

import pytest

from records import fingerprint
from records.fingerprint import of_file
from records.manifest import ROOT


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """An empty memory below a cache_dir of its own."""
    monkeypatch.setattr(fingerprint, "_here", {})
    monkeypatch.setattr(fingerprint, "_places", [])
    fingerprint.remember_below(tmp_path / "cache")
    return tmp_path / "cache" / fingerprint.FOLDER


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A file of 3 MiB that nobody has written to for as long as is waited for: here ten ticks of a slow clock."""
    monkeypatch.setattr(fingerprint, "SETTLED_NS", 10**8)
    path = tmp_path / "model.safetensors"
    path.write_bytes(os.urandom(3 * 2**20))
    time.sleep(0.11)
    return path


def fresh(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def forget(monkeypatch):
    """As a new process begins: what is on disk alone is known."""
    monkeypatch.setattr(fingerprint, "_here", {})


def test_it_is_remembered_on_disk_and_never_when_the_file_changed(counted, memory, large, monkeypatch):
    wanted = fresh(large)
    assert of_file(large) == wanted
    forget(monkeypatch)
    assert of_file(large) == wanted
    assert len(counted) == 1
    stat = large.stat()
    with large.open("r+b") as file:  # in place, of the same size, and its time put back
        file.write(b"another start")
    os.utime(large, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert large.stat().st_mtime_ns == stat.st_mtime_ns
    assert of_file(large) == fresh(large) != wanted
    other = large.with_name("other")
    other.write_bytes(large.read_bytes()[::-1])
    os.replace(other, large)
    assert of_file(large) == fresh(large)


def test_a_file_that_may_still_be_written_is_not_remembered(counted, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "SETTLED_NS", 3600 * 10**9)  # however long this test is kept waiting
    path = tmp_path / "growing"
    for _ in range(2):
        path.write_bytes(os.urandom(2**20 + 1))
        assert of_file(path) == fresh(path)
        assert of_file(path) == fresh(path)
    assert len(counted) == 4
    assert not memory.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"digest": "0"}', '{"files": [], "digest": "0"}'])
def test_a_broken_entry_counts_as_none(memory, large, monkeypatch, text):
    of_file(large)
    (entry,) = memory.iterdir()
    whole = json.loads(entry.read_text())
    entry.write_text(text)
    forget(monkeypatch)
    assert of_file(large) == fresh(large)
    assert json.loads(entry.read_text()) == whole


def test_a_place_that_cannot_be_written_costs_the_memory_alone(large, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "_here", {})
    (tmp_path / "cache").write_text("a file is in the way")
    monkeypatch.setattr(fingerprint, "_places", [tmp_path / "cache" / "digests"])
    assert of_file(large) == fresh(large)


@pytest.mark.slow
def test_processes_that_start_at_once_leave_one_whole_entry(large, tmp_path):
    code = (
        "import sys; from pathlib import Path; from records import fingerprint; fingerprint.SETTLED_NS = 10**8;"
        "fingerprint.remember_below(sys.argv[1]); print(fingerprint.of_file(Path(sys.argv[2])))"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "cache"), str(large)]
    started = [subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert {process.communicate(timeout=600)[0].strip() for process in started} == {fresh(large)}
    (entry,) = (tmp_path / "cache" / fingerprint.FOLDER).iterdir()
    assert json.loads(entry.read_text())["digest"] == fresh(large)
