"""Seconds until work begins: `train.py` to the end of its first step, `python -m analysis --help`, and their floors.

    python -m benchmarks.startup [--rounds 7] [--quick] [--write]

Pairs of fresh processes, one after the other: the command, and a bare interpreter that imports what the command cannot
do without. Files are warm: each is run once before anything is timed, so docstrings are cached and bytecode written.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.arguments import Parser, whole
from benchmarks.page import ROOT, publish, stamp, table
from benchmarks.rounds import spread
from records.errors import UserError, guard

HEAD = ["command", "seconds", "floor", "seconds", "command / floor"]
LIBRARIES = "import torch, transformers, peft, pytorch_lightning, hydra"


@dataclass(frozen=True)
class Start:
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
    args = arguments()
    torch.set_num_threads(args.threads)
    taken, rows = stamp(), []
    with TemporaryDirectory() as folder:
        for start in starts(Path(folder)):
            pairs = [paired(start, args.threads) for _ in range((1 if args.quick else args.rounds) + 1)][1:]
            command, floor = (spread(seconds) for seconds in zip(*pairs, strict=True))
            rate = spread([a / b for a, b in pairs])
            rows.append([start.name, f"{command.median:.2f}", f"`{start.floor}`", f"{floor.median:.2f}", str(rate)])
    publish(
        "startup",
        "Start",
        "\n\n".join([taken, (__doc__ or "").split("\n\n")[-1].strip(), table(HEAD, rows)]),
        args.write,
    )


def starts(folder: Path) -> list[Start]:
    """What is timed; runs go into `folder`, each resumed from nothing."""
    quiet = [
        "trainer.progress=lines",
        "logging.csv=false",
        "logging.tensorboard=false",
        "trainer.checkpoint_every=1000",
    ]
    train = ("train.py", "trainer.max_steps=2", "resume=false", f"runs_dir={folder}", *quiet)
    return [
        Start("`train.py` to the end of its first step", train, "step 1 of 2", LIBRARIES),
        Start("`python -m analysis --help`", ("-m", "analysis", "--help"), None, "pass"),
    ]


def paired(start: Start, threads: int) -> tuple[float, float]:
    """Seconds of the command and of its floor."""
    return seconds(start.words, start.until, threads), seconds(("-c", start.floor), None, threads)


def seconds(words: tuple[str, ...], until: str | None, threads: int) -> float:
    """From the start of a process to a line of its output that holds `until`, or to its end."""
    start, taken = time.perf_counter(), None
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    output = []
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            output.append(line)
            if until and until in line and taken is None:
                taken = time.perf_counter() - start
                process.terminate()
    if until is None and process.returncode == 0:
        return time.perf_counter() - start
    if taken is None:
        raise UserError(f"{' '.join(words)} did not start: {' '.join(output[-3:])}")
    return taken


def arguments() -> argparse.Namespace:
    """How often, with how many threads."""
    parser = Parser(prog="python -m benchmarks.startup")
    parser.add_argument("--rounds", type=whole, default=7)
    parser.add_argument("--threads", type=whole, default=2)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    guard(main)
