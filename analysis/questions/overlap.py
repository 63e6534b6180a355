"""Number of the tasks' texts that were trained on, as the manifests beside the scores say."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.grids.grid import Cell, Grid
from analysis.manifests.designs import Run
from analysis.names import listed
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled
from analysis.scores.tasks import parts_of

PLACE = 145
COUNTS = ["texts", "exact"]


def answer(material: Material) -> Answer | None:
    """Return the table of tasks with texts that were trained on, and notes; None where no design has a trained run."""
    runs = {label: [run for run in design.runs if run.trained] for label, design in material.designs.items()}
    runs = {label: some for label, some in runs.items() if some}
    if not runs:
        return None
    table = overlap_table(runs, material.tasks)
    counted = table.groupby("design").size().reindex(list(runs), fill_value=0)
    lacking = [label for label, number in counted.items() if number < len(material.tasks)]
    notes = [f"How many texts of the tasks were trained on is not measured for {listed(lacking)}."] if lacking else []
    if table.empty:
        return Answer("overlap", notes=notes)
    worst = table.sort_values(["share", "exact"], ascending=False, kind="stable").drop_duplicates("task")
    shared = worst[worst["share"] > 0]
    if shared.empty:
        note = f"No text of {len(worst)} tasks stands in the training texts with the same words."
        return Answer("overlap", notes=[note, *notes])
    grid = Grid(
        "overlap",
        "Distinct texts of each task, and how many stand in the training texts with the same words; the"
        " most over designs and seeds. Training texts: all that batches are drawn from, of every stage; what the base"
        " model read is not known.",
        ["Task", "Texts", "Exact", "Share"],
        title="Texts of the tasks that were trained on",
    )
    end = "tasks that have such texts; overlap.csv has all."
    grids, notes = [filled(grid, shared, _cells, material.settings.rows_shown, end)], [_found(worst, shared), *notes]
    return Answer("overlap", grids=grids, frames={"overlap": table}, notes=notes, of_designs=False, of_scores=False)


def overlap_table(runs: Mapping[str, list[Run]], tasks: list[str]) -> pd.DataFrame:
    """Return one row per design and task that was counted: texts, exact, share; of its seeds the largest share.

    A task that is the mean of others has their texts together.
    """
    rows = []
    for label, some in runs.items():
        for task in tasks:
            counted = [counts for run in some if (counts := _counts(run, task)) is not None]
            if len(counted) == len(some):
                rows.append({"design": label, "task": task, **max(counted, key=lambda counts: counts["share"])})
    return pd.DataFrame(rows, columns=["design", "task", *COUNTS, "share"])


def _counts(run: Run, task: str) -> dict[str, Any] | None:
    known = (run.manifest.get("evaluation") or {}).get("overlap") or {}
    parts = parts_of(task) or (task,)
    if not all(part in known for part in parts):
        return None
    sums = {key: sum(known[part][key] for part in parts) for key in COUNTS}
    return sums | {"share": sums["exact"] / max(1, sums["texts"])}


def _found(worst: pd.DataFrame, shared: pd.DataFrame) -> str:
    texts, exact = (int(worst[key].sum()) for key in COUNTS)
    most = [f"{row['task']} {row['share']:.1%}" for row in shared.head(3).to_dict("records")]
    return (
        f"Of {texts:,} texts of {len(worst)} tasks, counted task by task, {exact:,} stand in the training texts with"
        f" the same words; the largest shares: {', '.join(most)}."
    )


def _cells(row: Row) -> list[Cell]:
    return [Cell(row["task"]), *(Cell(f"{row[key]:,}") for key in COUNTS), Cell(f"{row['share']:.1%}")]
