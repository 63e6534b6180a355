"""The progress of a run: <run folder>/progress.json, gone when the run is finished, and the log of its steps."""

import csv
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from records.files import write_json

FILE = "progress.json"
EVERY = 5.0  # seconds between writings
SILENT = 300.0  # seconds after which a process of another machine is taken for dead


@dataclass(frozen=True)
class Progress:
    """The position of a run. step: the last one taken; loss: of it; seconds_left: at the mean pace of this attempt."""

    step: int
    steps: int
    loss: float | None = None
    seconds_left: float | None = None
    process: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)
    written: float = field(default_factory=time.time)

    @property
    def alive(self) -> bool:
        """Return whether the process is there; of another machine's, whether it wrote within `SILENT` seconds.

        A step that takes longer than that looks dead from elsewhere.
        """
        if self.host != socket.gethostname():
            return time.time() - self.written < SILENT
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's
            return True
        return True


def write_progress(folder: Path, progress: Progress) -> None:
    """Write <folder>/progress.json in one step."""
    write_json(folder / FILE, asdict(progress))


def read_progress(folder: Path) -> Progress | None:
    """Return what <folder>/progress.json says; None where there is none, or none that can be read."""
    with suppress(OSError, ValueError, TypeError):
        return Progress(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    return None


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
