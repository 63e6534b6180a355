"""Progress of the runs below some folders: `python -m studies.status runs watch=true`; plain text when piped."""

import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.scores.mteb_results import NOT_SCORES
from analysis.scores.mteb_task import read_task
from cli.errors import UserError, guard
from records.manifest import read_manifest
from records.progress import FILE, Progress, read_progress
from records.run_folder import model_name, whole_study
from studies.sweep import RECORDS, read_record

EVERY = 5.0  # seconds between two looks of watch=true
USAGE = "python -m studies.status <folder> ... [watch=true]: done, running, stopped, failed and waiting runs below them"
HEAD = ("run", "state", "step", "loss", "left", "score")
STYLE = {"done": "green", "running": "cyan", "stopped": "yellow", "failed": "red", "waiting": "dim"}


@dataclass(frozen=True)
class Row:
    """A run. state: done, running, stopped (the same command goes on), failed, or waiting for its turn in a sweep.

    score: the mean main score of the tasks that are scored; note: the last error of a failed run.
    """

    name: str
    state: str
    step: str = ""
    loss: str = ""
    left: str = ""
    score: str = ""
    note: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row under `HEAD`."""
        return self.name, self.state, self.step, self.loss, self.left, self.score


def rows(places: Sequence[Path]) -> list[Row]:
    """Return a row per run below `places`, by path, then the jobs of sweeps that have no run there yet."""
    jobs = _jobs(places)
    folders = {path.parent for place in places for name in ("manifest.json", FILE) for path in _found(place, name)}
    runs = [_row(folder, jobs.pop(str(folder.absolute()), {})) for folder in sorted(folders)]
    left = [job for job in jobs.values() if job["status"] != "done"]
    return [*runs, *(Row(_shown(job), job["status"], note=job.get("error", "")) for job in left)]


def _found(place: Path, name: str) -> Iterator[Path]:
    if place.name.startswith("seed="):
        yield from place.glob(name)
        return
    for above, below, _ in os.walk(place):  # passes over a folder that a run takes away meanwhile, where rglob fails
        runs = (Path(above) / folder / name for folder in below if folder.startswith("seed="))
        yield from (path for path in runs if path.is_file())


def _jobs(places: Sequence[Path]) -> dict[object, dict[str, Any]]:
    """The jobs of the sweeps whose record lies in or above `places`, by folder; of one folder the latest counts.

    The process of a sweep may have gone: then what waited or ran is stopped. Nothing tells whether a job without a
    folder was done since, so that of a sweep that has gone is left out once there is a later sweep.
    """
    shelves = {folder / RECORDS for place in places for folder in (place.absolute(), *place.absolute().parents)}
    records = [path.parent for shelf in shelves if shelf.is_dir() for path in shelf.glob("*/jobs.json")]
    records.sort(key=lambda record: record.name)
    living = {record for record in records if (at := read_progress(record)) and at.alive}
    jobs: dict[object, dict[str, Any]] = {}
    for record in sorted(records, key=lambda record: record in living):  # a living sweep has the last word
        for number, job in enumerate(read_record(record)):
            if record not in living and job["status"] in ("waiting", "running"):
                job["status"] = "stopped"
            if job.get("folder") or record in living or record == records[-1]:
                jobs[job.get("folder") or (record, number)] = job
    return jobs


def _shown(job: dict[str, Any]) -> str:
    """The folder of a job that left none, as a path from here; its words where it is not known."""
    return os.path.relpath(job["folder"]) if job.get("folder") else job["own"]


def _row(folder: Path, job: dict[str, Any]) -> Row:
    try:
        manifest = read_manifest(folder)
    except UserError as error:
        return Row(str(folder), "failed", note=job.get("error") or str(error))
    failed = job.get("status") == "failed" and job["written"] > (folder / "manifest.json").stat().st_mtime
    if manifest["status"] == "finished" and not failed:
        loss = manifest.get("loss")
        return Row(
            str(folder), "done", str(manifest["steps"]), "" if loss is None else f"{loss:.3f}", score=_score(folder)
        )
    at = read_progress(folder)
    steps = manifest["config"]["trainer"]["max_steps"]
    state, note = "stopped", ""
    if at and at.alive:
        state = "running"
    elif failed:
        state, note = "failed", job["error"]
    elif job.get("status") in ("waiting", "running") and job.get("written", math.inf) > (at.written if at else 0):
        state = job["status"]  # of a living sweep that has not come to it, or to its first step
    step = f"{at.step if at else 0} of {steps}"
    left = _time(at) if at and at.alive else ""
    return Row(str(folder), state, step, f"{at.loss:.3f}" if at and at.loss is not None else "", left, note=note)


def _time(at: Progress) -> str:
    if at.seconds_left is None:
        return ""
    left = max(0.0, at.seconds_left - (time.time() - at.written))
    return f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min" if left < 5400 else f"{left / 3600:.1f} h"


def _score(folder: Path) -> str:
    """The mean of the main scores beside the study, of the folder of scores that was written last; "" without any."""
    study = folder.absolute().parents[1]
    model = model_name(whole_study(study, study.name), folder.parent.name).replace("/", "__")
    of_run = [path for path in study.glob(f"scores/results/{model}/{folder.name}@*") if path.is_dir()]
    if not of_run:
        return ""
    files = [f for f in max(of_run, key=lambda p: p.stat().st_mtime).glob("*.json") if f.name not in NOT_SCORES]
    scores = [row.score for row in (read_task(f, model, "") for f in files) if math.isfinite(row.score)]
    return f"{math.fsum(scores) / len(scores):.4f} ({len(scores)})" if scores else ""


def summary(runs: Sequence[Row]) -> str:
    """Return how many runs there are of each state."""
    counts = {state: sum(row.state == state for row in runs) for state in STYLE}
    return f"{len(runs)} runs: " + ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def plain_table(runs: Sequence[Row]) -> str:
    """Return the table without colours, each error below it in a line of its own."""
    table = [HEAD, *(row.cells for row in runs)]
    widths = [max(len(row[i]) for row in table) for i in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([*lines, *(f"failed: {row.name}: {row.note}" for row in runs if row.note), summary(runs)])


def rich_table(runs: Sequence[Row]) -> Any:
    """Return the table for a terminal; long names are folded, errors stand below their run."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*HEAD, caption=summary(runs), caption_justify="left", box=None, pad_edge=False)
    table.columns[0].overflow = "fold"
    for row in runs:
        name = Text(row.name).append(f"\n{row.note}" if row.note else "", style="red")
        table.add_row(name, Text(row.state, style=STYLE[row.state]), *row.cells[2:])
    return table


def main() -> None:
    """Print the table, or refresh it until nothing runs or waits. Raises `UserError` for a place without runs."""
    words = sys.argv[1:]
    if not words or {"-h", "--help"} & {*words}:
        print(USAGE)
        return
    switches = {word: word == "watch=true" for word in words if word.startswith("watch=")}
    places = [Path(word) for word in words if word not in switches]
    wrong = [word for word in switches if word not in ("watch=true", "watch=false")]
    absent = [str(place) for place in places if not place.is_dir()]
    if wrong or absent or not places:
        fault = f"{wrong[0]} must be watch=true or watch=false" if wrong else f"There is no folder {', '.join(absent)}"
        raise UserError(f"{fault}. {USAGE}.")
    runs = rows(places)
    if not runs:
        raise UserError(f"No runs below {', '.join(map(str, places))}. Give runs_dir, or the folder of a study.")
    if not sys.stdout.isatty():
        print(plain_table(runs))
        return
    from rich.console import Console
    from rich.live import Live

    if not any(switches.values()):
        Console().print(rich_table(runs))
        return
    with Live(rich_table(runs), auto_refresh=False) as live:
        while any(row.state in ("running", "waiting") for row in runs):
            time.sleep(EVERY)
            runs = rows(places)
            live.update(rich_table(runs), refresh=True)


if __name__ == "__main__":
    guard(main)
