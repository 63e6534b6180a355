"""Processor seconds and memory of `python -m analysis` at field size.

    python -m benchmarks.speed.analysis_size [--threads 1] [--quick] [--write]

Made scores with four decimals: 283 models x 56 tasks, and 20 models x 500 tasks x 100 seeds, a million rows. Each
command is a fresh process: processor seconds are its user and system time, MB its largest resident set.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.page import publish, stamp, table
from benchmarks.speed.startup import cost
from benchmarks.speed.work import begun
from cli.errors import guard

HEAD = ["scores", "words", "processor s", "MB"]
KINDS = ("Classification", "Clustering", "Reranking", "Retrieval", "STS")
SHAPES = {"283 models x 56 tasks": (283, 56, 1), "20 models x 500 tasks x 100 seeds": (20, 500, 100)}
# The largest resident set of getrusage is that of the process that started it, where that was larger.
CODE = "import runpy; runpy.run_module('analysis', run_name='__main__'); print(open('/proc/self/status').read())"
QUICK = {"6 models x 20 tasks x 2 seeds": (6, 20, 2)}


def main() -> None:
    """Measure and print one table."""
    args = begun("analysis_size", "--threads", "--quick")
    taken, rows = stamp(), []
    shell = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    with TemporaryDirectory() as folder:
        for name, shape in (QUICK if args.quick else SHAPES).items():
            path = made(Path(folder) / "scores.csv", *shape)
            for words in ((), ("against=m0",), ("report=true",)):
                took = cost(("-c", CODE, f"scores={path}", *words), None, shell)
                kilobytes = next(int(line.split()[1]) for line in took.output if line.startswith("VmHWM:"))
                rows.append([name, " ".join(words), f"{took.processor:.1f}", f"{kilobytes // 1024:,}"])
    parts = [taken, (__doc__ or "").split("\n\n")[-1].strip(), table(HEAD, rows)]
    publish("analysis_size", "Analysis", parts, args.write)


def made(path: Path, models: int, tasks: int, seeds: int) -> Path:
    """Write scores whose models differ less than their tasks, and whose seeds differ least, as a long csv."""
    rng = np.random.default_rng(0)
    means = rng.uniform(0.4, 0.6, tasks) + 0.02 * rng.normal(size=(models, 1)) + 0.02 * rng.normal(size=(models, tasks))
    scores = np.clip(means[:, None] + 0.005 * rng.normal(size=(models, seeds, tasks)), 0, 1).round(4)
    model, seed, task = (place.ravel() for place in np.indices(scores.shape))
    names = [np.array([f"{letter}{k}" for k in range(max(models, tasks))]) for letter in "mt"]
    columns = {"model": names[0][model], "task": names[1][task], "type": np.array(KINDS)[task % len(KINDS)]}
    pd.DataFrame({**columns, "seed": seed, "score": scores.ravel()}).to_csv(path, index=False)
    return path


if __name__ == "__main__":
    guard(main)
