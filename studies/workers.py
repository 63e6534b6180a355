"""Commands of this checkout side by side, each in a process of its own that is forked after the slow imports."""

import multiprocessing
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import chdir, suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from statistics import fmean
from typing import Any

from cli.errors import UserError
from cli.remarks import HOME


@dataclass(frozen=True)
class Job:
    """A command. words: as after `python`, such as ("train.py", "pooler=eos"). after: jobs that must end well first.

    run: the folder of the run that it trains.
    """

    name: str
    words: tuple[str, ...]
    after: tuple[str, ...] = ()
    run: str = ""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Progress:
    """A line per job that has ended, with an estimate of the time that is left.

    plan: how many jobs there are. count: jobs at a time.
    """

    def __init__(self, jobs: Sequence[Job], count: int) -> None:
        self.jobs, self.count = jobs, min(count, len(jobs))
        self.seconds: dict[str, list[float]] = {}  # kind of job -> of those that ended
        kinds = ", ".join(f"{len(of_kind)} to {kind}" for kind, of_kind in self._by_kind().items())
        self.plan = f"{len(jobs)} jobs: {kinds}; {self.count} at a time."

    def _by_kind(self) -> dict[str, list[Job]]:
        kinds: dict[str, list[Job]] = {}
        for job in self.jobs:
            kinds.setdefault(job.name.partition(" ")[0], []).append(job)
        return kinds

    def ended(self, job: Job, code: int, seconds: float) -> None:
        """Print how a job ended; what is left is estimated from the mean of its kind, once there is one of each."""
        self.seconds.setdefault(job.name.partition(" ")[0], []).append(seconds)
        done = sum(map(len, self.seconds.values()))
        left = ""
        if self.seconds.keys() == self._by_kind().keys() and done < len(self.jobs):
            of_kinds = [
                (len(jobs) - len(self.seconds[kind]), fmean(self.seconds[kind]))
                for kind, jobs in self._by_kind().items()
            ]
            left = f"; about {sum(count * mean for count, mean in of_kinds) / self.count / 60:.0f} min left"
        how = "ended" if code == 0 else f"FAILED with exit code {code}"
        print(f"[{done} of {len(self.jobs)}] {job.name} {how} after {seconds:.0f} s{left}", flush=True)


def finished_jobs(jobs: Sequence[Job], modules: Sequence[str]) -> list[str]:
    """Return the names of the jobs whose commands would do nothing, as one process for all of them finds out.

    The programs of `jobs` say so by their function `finished`. A job whose answer fails is not finished: it will say
    what is wrong. modules: as for `run_jobs`. Nothing is started where no run is there.
    """
    if not any(job.run and (Path(job.run) / "manifest.json").exists() for job in jobs):
        return []
    context = _context(modules)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tell_finished, args=(jobs, theirs))
    process.start()
    theirs.close()
    try:
        names: list[str] = ours.recv()
    except EOFError:  # it was killed
        names = []
    process.join()
    return names


def _context(modules: Sequence[str]) -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    with chdir(HOME):  # the server looks for modules where it starts: another folder may hold packages of these names
        forkserver.ensure_running()
    return context


def _tell_finished(jobs: Sequence[Job], pipe: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    names: list[str] = []
    for job in jobs:
        with suppress(UserError):
            program = runpy.run_path(str(HOME / job.words[0]))
            ready = {*job.after} <= {*names}
            if ready and program["finished"](list(job.words[1:]), *filter(None, [job.run])):
                names.append(job.name)
    pipe.send(names)


def run_jobs(
    jobs: Sequence[Job], count: int, modules: Sequence[str], ended: Callable[[Job, int, float], None]
) -> dict[str, int]:
    """Run `jobs`, `count` at a time, in their order as far as `after` allows; return the exit code of each that ran.

    A job is a process with the memory of a server that has imported `modules` and run nothing, so its numbers are
    those of the command by itself. A job that is named in `after` and not among `jobs` has ended well before. ended:
    called with a job, its exit code and its seconds. What still runs is stopped where this process is (SIGINT,
    SIGTERM); the same jobs then continue.
    """
    context = _context(modules)
    waiting, codes = list(jobs), dict[str, int]()
    before = {name for job in jobs for name in job.after} - {job.name for job in jobs}
    running: dict[Any, tuple[Job, ForkServerProcess, float]] = {}  # by what is told when a process ends
    usual = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        while True:
            ready = [job for job in waiting if all(name in before or codes.get(name) == 0 for name in job.after)]
            for job in ready[: count - len(running)]:
                process = context.Process(target=_command, args=(job.words,), name=job.name)
                process.start()
                running[process.sentinel] = job, process, time.monotonic()
                waiting.remove(job)
            if not running:
                return codes
            for sentinel in wait(list(running)):
                job, process, started = running.pop(sentinel)
                process.join()
                codes[job.name] = process.exitcode or 0
                ended(job, codes[job.name], time.monotonic() - started)
    finally:
        for _, process, _ in running.values():
            process.terminate()
        for _, process, _ in running.values():
            process.join()
        signal.signal(signal.SIGTERM, usual)


def _command(words: Sequence[str]) -> None:
    """Be `python <words>`: a file of this checkout, or -m and a module; end where the parent does, killed or not."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if words[0] == "-m":
        sys.argv[:] = list(words[1:])
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = [str(HOME / words[0]), *words[1:]]
        runpy.run_path(sys.argv[0], run_name="__main__")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
