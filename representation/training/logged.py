"""The loss of every step of a run, from the logs of all its attempts."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def logged_loss(folder: Path) -> Floats:
    """[steps] loss of each step, in order; a step that was run again after an interruption counts as it was last run.

    folder: of the run. Empty where nothing was logged.
    """
    found: dict[int, float] = {}
    for path in sorted(folder.glob("logs/attempt=*/metrics.csv"), key=_attempt):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row.get("loss"):
                    found[int(row["step"])] = float(row["loss"])
    return np.array([found[step] for step in sorted(found)])


def smoothed(values: Floats, width: int) -> Floats:
    """[steps] mean of each value and of the `width` - 1 before it, of fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - width)
    smooth: Floats = (sums[ends] - sums[starts]) / (ends - starts)
    return smooth


def _attempt(path: Path) -> int:
    return int(path.parent.name.partition("=")[2])
