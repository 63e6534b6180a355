"""Commands of this checkout side by side, each in a process of its own that is forked after the slow imports."""

import multiprocessing
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from shutil import which
from typing import Any, NamedTuple

from cli.compose import HOME
from cli.errors import UserError

# Imported once, for all jobs: what train.py and evaluate.py would each take seconds for.
MODULES = ("torch", "peft", "transformers.models.llama.modeling_llama", "training.run", "mteb", "evaluation.scoring")


class Job(NamedTuple):
    """A command. words: as after `python`, such as ("train.py", "pooler=eos"). after: jobs that must end well first."""

    name: str
    words: tuple[str, ...]
    after: tuple[str, ...] = ()


def free_memory() -> dict[str, int]:
    """Return the free MiB of each NVIDIA GPU that this process sees, by its name for CUDA_VISIBLE_DEVICES."""
    query = ["nvidia-smi", "--query-gpu=index,uuid,memory.free", "--format=csv,noheader,nounits"]
    text = subprocess.run(query, check=False, capture_output=True, text=True).stdout if which(query[0]) else ""
    rows, seen = re.findall(r"^(\d+), (\S+), (\d+)$", text, re.M), os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [name.strip() for name in (seen or "").split(",") if name.strip()]  # numbers, or first letters of a UUID
    found = {u: int(mib) for i, u, mib in rows if seen is None or any(name in (i, u[: len(name)]) for name in names)}
    part_of_one = re.match(r"\d+, ", text) and seen not in ("", "-1")  # MIG: a job at a time
    return found or ({"": 0} if part_of_one else {})


def need(parameters: int, tokens: int) -> float:
    """Estimate a run's MiB on a GPU from the two bases of docs/performance.md, with sqrt(parameters) bytes a token."""
    return 2048 + 1.25 * (2 * parameters + 75 * parameters**0.5 * tokens) / 2**20


def places(free: Mapping[str, int], of_a_run: float, cores: int) -> list[str]:
    """Return the GPU of each job that runs at a time, GPUs in turn, at most one a core; without GPU "" a core."""
    room = {card: max(1, int(mib / of_a_run)) for card, mib in free.items()} or {"": cores}
    return [card for turn in range(max(room.values())) for card in room if turn < room[card]][:cores]


def run_jobs(jobs: Sequence[Job], at_once: Sequence[str], modules: Sequence[str] = MODULES) -> None:
    """Run `jobs`, one in each of the `places` at_once, in their order as far as `after` allows; a line for each.

    A job is forked from a server that has imported `modules` and run nothing, so its numbers are the command's. What
    still runs is stopped with this process, and continues with the same jobs. Raises `UserError` that names the failed.
    """
    os.environ.setdefault("TQDM_DISABLE", "1")  # mteb's own bars; tqdm reads it when it is first imported
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    with chdir(HOME):  # the server looks for modules where it starts: another folder may hold packages of these names
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # in the server, whose imports Ctrl-C would end with a trace
        forkserver.ensure_running()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    waiting, codes, cards = list(jobs), dict[str, int](), list(at_once)
    running: dict[Any, tuple[Job, ForkServerProcess, float, str]] = {}  # by what waits for a process to end
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        while True:
            ready = [job for job in waiting if all(codes.get(name) == 0 for name in job.after)]
            for job in ready[: len(cards)]:
                card = cards.pop(0)
                process = context.Process(target=_command, args=(job.words, card), name=job.name)
                process.start()
                running[process.sentinel] = job, process, time.monotonic(), card
                waiting.remove(job)
            if not running:
                break
            for sentinel in wait(list(running)):
                job, process, started, card = running.pop(sentinel)
                process.join()
                cards.append(card)
                codes[job.name] = code = process.exitcode or 0
                how = f"{f'FAILED with exit code {code}' if code else 'ended'} after {time.monotonic() - started:.0f} s"
                print(f"[{len(codes)} of {len(jobs)}] {job.name} {how}", flush=True)
    finally:
        for _, process, *_ in running.values():
            process.terminate()
        for _, process, *_ in running.values():
            process.join()
    if failed := [name for name, code in codes.items() if code]:
        what = f"{len(failed)} of {len(jobs)} jobs failed ({', '.join(failed)}); their errors stand above"
        raise UserError(f"{what}. The same command goes on from what is finished.")


def _command(words: Sequence[str], card: str) -> None:
    """Be `python <words>`, a file of this checkout, on one GPU; end where the parent does, killed or not."""
    os.environ |= {"CUDA_VISIBLE_DEVICES": card} if card else {}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv[:] = [str(HOME / words[0]), *words[1:]]
    runpy.run_path(sys.argv[0], run_name="__main__")


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()  # type: ignore[union-attr]
    os.kill(os.getpid(), signal.SIGTERM)
