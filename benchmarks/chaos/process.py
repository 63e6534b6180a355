"""A command as a process of its own, forked from one with the slow imports, and the faults of its disk and clock."""

import errno
import itertools
import multiprocessing
import os
import runpy
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from tqdm import tqdm

from benchmarks.chaos.commands import ROOT

# Imported before anything is forked; nothing of them has run by then.
MODULES = ("torch", "peft", "pytorch_lightning", "hydra", "transformers.models.llama.modeling_llama", "mteb", "pandas")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
ERRORS = {"no space": errno.ENOSPC, "read-only": errno.EROFS, "rename fails": errno.ESTALE}
DAYS = 3 * 86_400 * 10**9  # nanoseconds
TICK = 0.02  # seconds between two looks at a process


@dataclass(frozen=True)
class Fault:
    """A fault inside a process. kind: a key of `ERRORS`, "clock", "killed"; "" counts alone.

    place: the folder that it concerns. at: from which write below it on the disk is full or read-only; the one rename
    that fails; the look at the clock from which on it jumps; the write before which the process is killed.
    """

    kind: str
    place: str
    at: int = 0


class Process:
    """`python <words>` in the folder `place`, its output added to the file `out`. above: a shell waits for it.

    It is a session of its own, and signals go to it and to processes of such sessions alone: through handles of the
    system, never by a number that could by then be another's.
    """

    begun: ClassVar[list["Process"]] = []

    def __init__(self, words: list[str], place: Path, out: Path, fault: Fault, above: bool = False) -> None:
        for module in MODULES:
            import_module(module)
        self.place, self.above = place, above
        given = words, str(place), str(out), fault, above
        self.process = multiprocessing.get_context("fork").Process(target=_become, args=given)
        self.process.start()
        assert self.process.pid
        self.pid = self.process.pid
        self.handle = os.pidfd_open(self.pid)  # nobody has waited for it yet: the number is its own
        self.begun.append(self)

    def wait(self, seconds: float | None = None) -> int | None:
        """Return the exit code; None where it still runs after `seconds`."""
        self.process.join(seconds)
        if self.process.exitcode is not None and self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
        return self.process.exitcode

    def wait_until(self, processor_seconds: float) -> None:
        """Wait until it has used the processor for so long: a moment that no other work on the machine moves."""
        while self.wait(TICK) is None and self.used() < processor_seconds:
            pass

    def used(self) -> float:
        """Return the seconds of the processor that it, or what the shell above waits for, has used so far."""
        return max(map(_processor_seconds, (self.pid, *(self.others() if self.above else ()))))

    def send(self, number: int, pid: int | None = None) -> bool:
        """Send a signal to it, or to one of `others()`; return whether that was still there."""
        if pid is None:
            running = self.wait(0) is None
            if running:
                signal.pidfd_send_signal(self.handle, number)
            return running
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                if pid in self.others():  # asked with the handle open: what has the number now, keeps it
                    signal.pidfd_send_signal(handle, number)
                    return True
            finally:
                os.close(handle)
        return False

    def others(self) -> list[int]:
        """Return the other processes that work in its place, of the sessions that were begun here."""
        pids, sessions = [], {process.pid for process in self.begun}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                ours = fields[0] != "Z" and int(fields[3]) in sessions
                if ours and os.readlink(entry / "cwd") == str(self.place):
                    pids.append(int(entry.name))
        return [pid for pid in pids if pid not in (os.getpid(), self.pid)]

    def wait_for_others(self, seconds: float = 120) -> bool:
        """Return whether all of them end within `seconds`; what does not is killed."""
        end = time.monotonic() + seconds
        while self.others() and time.monotonic() < end:
            time.sleep(0.1)
        left = self.others()
        for pid in left:
            self.send(signal.SIGKILL, pid)
        return not left

    @classmethod
    def stop_all(cls) -> None:
        """Kill what still runs of all that was begun."""
        for process in cls.begun:
            if process.wait(0) is None:
                process.send(signal.SIGKILL)
                process.wait()
        if cls.begun:
            cls.begun[-1].wait_for_others(0)


def _processor_seconds(pid: int | None) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counts(out: Path) -> dict[str, int]:
    """Return how many writes, renames and looks at the clock the last whole process of this output made."""
    numbers = map(int, out.with_suffix(".counts").read_text().split())
    return dict(zip(("writes", "renames", "looks"), numbers, strict=True))


def _become(words: list[str], place: str, out: str, fault: Fault, above: bool) -> None:
    os.setsid()
    os.chdir(place)
    multiprocessing.process.ORIGINAL_DIR = place  # type: ignore[attr-defined]  # where processes of its own begin
    file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1, closefd=False) for n in (1, 2))
    if above and (child := os.fork()):
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The harness's own bars have made tqdm a lock between processes: a killed command would hold it for all after it.
    tqdm.set_lock(threading.RLock())
    done = {"writes": 0, "renames": 0, "looks": 0}
    _install(fault, done)
    code = 0
    try:
        _run(words)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    finally:
        sums = os.open(Path(out).with_suffix(".counts"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(sums, " ".join(map(str, done.values())).encode())
    if above:
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _run(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv[:] = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = [str(ROOT / words[0]), *words[1:]]
        runpy.run_path(sys.argv[0], run_name="__main__")


def _install(fault: Fault, done: dict[str, int]) -> None:
    """Raise the fault's error where Python opens, makes or renames files below its place; let its clock jump."""

    def hook(event: str, words: tuple[Any, ...]) -> None:
        if event == "os.rename":
            what = "renames"
        elif event == "os.mkdir" or (event == "open" and isinstance(words[2], int) and words[2] & WRITING):
            what = "writes"
        else:
            return
        if not any(isinstance(w, str | os.PathLike) and os.fspath(w).startswith(fault.place) for w in words[:2]):
            return
        done[what] += 1
        if fault.kind == "killed" and sum((done["writes"], done["renames"])) == fault.at:
            os.kill(os.getpid(), signal.SIGKILL)
        full = fault.kind in ("no space", "read-only") and what == "writes" and done[what] >= fault.at
        if full or (fault.kind == "rename fails" and what == "renames" and done[what] == fault.at):
            raise OSError(ERRORS[fault.kind], os.strerror(ERRORS[fault.kind]), str(words[0]))

    sys.addaudithook(hook)
    real, draw, looks = time.time_ns, Random(fault.at), itertools.count(1)

    def jumping() -> int:
        done["looks"] = next(looks)
        return real() + (draw.randint(-DAYS, DAYS) if fault.kind == "clock" and done["looks"] >= fault.at else 0)

    time.time_ns, time.time = jumping, lambda: jumping() / 1e9
