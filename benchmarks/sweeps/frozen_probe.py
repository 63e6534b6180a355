"""The saving of frozen probe mode: seconds of a step of LoRA training against a head on cached states, one process.

python -m benchmarks.sweeps.frozen_probe [steps=40] [key=value of train.yaml ...]

Each line is a whole run by `training.run.train_run` in a folder of its own; a step is its training_step, the
cold cache's with its share of computing the states. CPU seconds do not count what other programs took of the cores.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.arguments import taken_out
from benchmarks.page import table
from cli.compose import composed, plain
from cli.errors import guard
from cli.quiet import quieten
from records.run_folder import RunFolder
from training import checks, run
from training.module import StepModule

Clocks = tuple[float, float]  # wall and CPU seconds
POOLERS = ("lastlayer", "multilayer")


def main() -> None:
    """Print one table per pooler: median step, and its ratio to the normal one."""
    quieten()
    steps, words = taken_out(sys.argv[1:], "steps", 40)
    for pooler in POOLERS:
        checks.check_sizes(configured(pooler, steps, [*words, "backbone.frozen=true"]))
    print(f"{steps} steps, {torch.get_num_threads()} threads, median step {' '.join(words)}\n", flush=True)
    lines: list[list[str]] = []
    for pooler in POOLERS:
        with TemporaryDirectory() as folder:
            rows = measured(pooler, steps, words, Path(folder))
        wall, cpu = rows["LoRA"]
        for name, (w, c) in rows.items():
            lines.append([pooler, name, f"{w:.3f}", f"{wall / w:.1f}", f"{c:.3f}", f"{cpu / c:.1f}"])
    print("\n" + table(["pooler", "", "wall s", "normal / this", "CPU s", "normal / this"], lines))


def measured(pooler: str, steps: int, words: list[str], folder: Path) -> dict[str, Clocks]:
    """Train normally, with an empty cache and with a full one; return the seconds of a step of each."""
    docstrings = Path(configured(pooler, steps, words)["cache_dir"]).resolve() / "docstrings"
    docstrings.mkdir(parents=True, exist_ok=True)
    (folder / "docstrings").symlink_to(docstrings)  # read once, not again in each fresh cache
    rows: dict[str, Clocks] = {}
    for name, frozen in (("LoRA", "false"), ("frozen, cold cache", "true"), ("frozen, warm cache", "true")):
        cfg = configured(pooler, steps, [*words, f"backbone.frozen={frozen}", f"cache_dir='{folder}'"])
        with clocked(StepModule, "training_step") as each, clocked(run, "fill_states") as fill:
            run.train_run(cfg, RunFolder(folder / name))
        filled = fill[0] if fill else (0.0, 0.0)
        rows[name] = tuple(median(t[k] for t in each) + filled[k] / steps for k in (0, 1))  # type: ignore[assignment]
    return rows


def configured(pooler: str, steps: int, words: list[str]) -> dict[str, Any]:
    """The composed configuration of one run, without logs."""
    usual = [f"pooler={pooler}", "attn=bi", f"trainer.max_steps={steps}", "trainer.progress=false"]
    return plain(composed("train", [*usual, "logging.csv=false", "logging.tensorboard=false", *words]))


@contextmanager
def clocked(owner: Any, name: str) -> Iterator[list[Clocks]]:
    """Note the (wall, CPU) seconds of every call of `owner.name` while the block runs."""
    real, seconds = getattr(owner, name), list[Clocks]()

    def timed(*args: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = real(*args)
        seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
        return result

    with patch.object(owner, name, timed):
        yield seconds


if __name__ == "__main__":
    guard(main)
