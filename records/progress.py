"""The log of a run's steps."""

import csv
from pathlib import Path


def logged(folder: Path, column: str) -> list[float]:
    """Return the values of a run's log, step by step; a step run again after an interruption counts as last run.

    folder: of the run; column: "loss", or another that each step has. Empty where nothing was logged.
    """
    values: dict[int, float] = {}
    attempts = folder.glob("logs/attempt*/metrics.csv")
    for path in sorted(attempts, key=lambda path: int(path.parent.name.partition("=")[2])):
        with path.open(encoding="utf-8", newline="") as file:
            values |= {int(row["step"]): float(row[column]) for row in csv.DictReader(file) if row.get(column)}
    return [values[step] for step in sorted(values)]
