"""Seconds until work begins: `train.py`, `evaluate.py`, `python -m analysis --help`, and their floors.

    python -m benchmarks.speed.startup [--rounds 7] [--quick] [--write]

Pairs of fresh processes, one after the other: the command, and a bare interpreter that imports what the command cannot
do without. Files are warm: each is run once before anything is timed, so docstrings are cached and bytecode written.
Processor seconds are user and system time of all threads: what the same start takes on a core that nobody else uses.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.page import ROOT, publish, stamp, table
from benchmarks.rounds import spread
from benchmarks.speed.work import begun
from cli.errors import UserError, guard

HEAD = ["command", "seconds", "processor s", "floor", "seconds", "processor s", "command / floor (processor s)"]
LIBRARIES = "import torch, transformers, peft, pytorch_lightning, hydra"
SCORING = "import mteb, hydra"


class Start(NamedTuple):
    """A command that is timed.

    words: after the interpreter. until: what the line holds at which it counts as started; None: it runs to its end.
    floor: what a bare interpreter runs beside it.
    """

    name: str
    words: tuple[str, ...]
    until: str | None
    floor: str


def main() -> None:
    """Measure and print one table."""
    shell = dict(os.environ)  # the commands start from it: `begun` adds what silences the libraries of this process
    args = begun("startup", "--rounds", "--threads", "--quick")
    shell["OMP_NUM_THREADS"] = str(args.threads)
    taken, rows = stamp(), []
    with TemporaryDirectory() as folder:
        for name, words, until, floor in starts(Path(folder)):
            rounds = range((1 if args.quick else args.rounds) + 1)
            pairs = [(cost(words, until, shell), cost(("-c", floor), None, shell)) for _ in rounds][1:]
            clock = [f"{median(pair[k].clock for pair in pairs):.2f}" for k in (0, 1)]
            processor = [f"{median(pair[k].processor for pair in pairs):.2f}" for k in (0, 1)]
            rate = spread([command.processor / bare.processor for command, bare in pairs])
            rows.append([name, clock[0], processor[0], f"`{floor}`", clock[1], processor[1], str(rate)])
    publish("startup", "Start", [taken, (__doc__ or "").split("\n\n")[-1].strip(), table(HEAD, rows)], args.write)


def starts(folder: Path) -> list[Start]:
    """The commands that are timed; runs go into `folder`, each resumed from nothing."""
    quiet = (
        "trainer.progress=lines",
        "logging.csv=false",
        "logging.tensorboard=false",
        "trainer.checkpoint_every=1000",
    )
    train = ("train.py", "trainer.max_steps=2", "resume=false", f"runs_dir={folder}", *quiet)
    evaluate = ("evaluate.py", "run=null", "benchmark=docs", "progress=false", f"results={folder}")
    return [
        Start("`train.py` to the end of its first step", train, "step 1 of 2", LIBRARIES),
        Start("`evaluate.py` to its plan, the docs tasks built", evaluate, " scores; 0 are there", SCORING),
        Start("`python -m analysis --help`", ("-m", "analysis", "--help"), None, "pass"),
    ]


class Cost(NamedTuple):
    """Seconds of one process on the clock, and of processors; the lines that it has written."""

    clock: float
    processor: float
    output: list[str]


def cost(words: tuple[str, ...], until: str | None, shell: dict[str, str]) -> Cost:
    """From the start of a process to a line of its output that holds `until`, where it is ended, or to its own end."""
    start, before, taken, output = time.perf_counter(), getrusage(RUSAGE_CHILDREN), None, list[str]()
    where: dict[str, Any] = {"cwd": ROOT, "env": shell, "text": True}
    command = [sys.executable, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **where) as process:
        assert process.stdout
        for line in process.stdout:
            output.append(line)
            if until and until in line and taken is None:
                taken = time.perf_counter() - start
                process.kill()
    if until is None and process.returncode == 0:
        taken = time.perf_counter() - start
    if taken is None:
        raise UserError(f"{' '.join(words)} {'did not start' if until else 'failed'}: {' '.join(output[-3:])}")
    after = getrusage(RUSAGE_CHILDREN)
    return Cost(taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, output)


if __name__ == "__main__":
    guard(main)
