"""Commands of this checkout side by side, each in a process of its own that is forked after the slow imports."""

import multiprocessing
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from typing import Any

from cli.compose import HOME
from cli.errors import UserError

# Imported once, for all jobs: what train.py and evaluate.py would each take seconds for.
MODULES = ("torch", "peft", "transformers.models.llama.modeling_llama", "training.run", "mteb", "evaluation.scoring")


@dataclass(frozen=True)
class Job:
    """A command. words: as after `python`, such as ("train.py", "pooler=eos"). after: jobs that must end well first."""

    name: str
    words: tuple[str, ...]
    after: tuple[str, ...] = ()


def run_jobs(jobs: Sequence[Job], count: int | None, modules: Sequence[str] = MODULES) -> None:
    """Run `jobs`, `count` at a time (None: one per core), in their order as far as `after` allows; a line for each.

    A job is a process with the memory of a server that has imported `modules` and run nothing, so its numbers are
    those of the command by itself. What still runs is stopped where this process is (SIGINT, SIGTERM); the same jobs
    then continue. Raises `UserError` that names those that failed.
    """
    os.environ.setdefault("TQDM_DISABLE", "1")  # mteb's own bars; tqdm reads it when it is first imported
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    count = count or cores or 1
    print(f"{len(jobs)} jobs, {count} at a time.", flush=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    with chdir(HOME):  # the server looks for modules where it starts: another folder may hold packages of these names
        forkserver.ensure_running()
    waiting, codes = list(jobs), dict[str, int]()
    running: dict[Any, tuple[Job, ForkServerProcess, float]] = {}  # by what waits for a process to end
    usual = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        while True:
            ready = [job for job in waiting if all(codes.get(name) == 0 for name in job.after)]
            for job in ready[: count - len(running)]:
                process = context.Process(target=_command, args=(job.words,), name=job.name)
                process.start()
                running[process.sentinel] = job, process, time.monotonic()
                waiting.remove(job)
            if not running:
                break
            for sentinel in wait(list(running)):
                job, process, started = running.pop(sentinel)
                process.join()
                codes[job.name] = code = process.exitcode or 0
                how = f"FAILED with exit code {code}" if code else "ended"
                seconds = f"{time.monotonic() - started:.0f} s"
                print(f"[{len(codes)} of {len(jobs)}] {job.name} {how} after {seconds}", flush=True)
    finally:
        for _, process, _ in running.values():
            process.terminate()
        for _, process, _ in running.values():
            process.join()
        signal.signal(signal.SIGTERM, usual)
    if failed := [name for name, code in codes.items() if code]:
        raise UserError(
            f"{len(failed)} of {len(jobs)} jobs failed ({', '.join(failed)}); their errors stand above. "
            "What is finished is kept: the same command goes on."
        )


def _command(words: Sequence[str]) -> None:
    """Be `python <words>`, a file of this checkout; end where the parent does, killed or not."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv[:] = [str(HOME / words[0]), *words[1:]]
    runpy.run_path(sys.argv[0], run_name="__main__")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
