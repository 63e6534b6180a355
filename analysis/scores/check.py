"""Splits and subsets that the scores are of: checked to be alike for all that is compared, and stated in notes."""

from collections.abc import Iterable

import pandas as pd

from analysis.manifests.designs import Design
from analysis.names import listed
from analysis.scores.tasks import Benchmark
from cli.errors import UserError


def check_alike(frame: pd.DataFrame) -> None:
    """Raise UserError where designs have a task on other splits or subsets: a mean over others is another score."""
    said = frame[frame["split"] != ""]
    for task, rows in said.groupby("task", sort=False):
        kinds = rows.groupby(["split", "subsets"], sort=False)["model"].unique()
        if len(kinds) > 1:
            parts = [
                f"{' and '.join(split.split(';'))} ({listed(subsets.split(';'), 4)}) for {listed(models, 4)}"
                for (split, subsets), models in kinds.items()
            ]
            raise UserError(
                f"{task} was scored on {' and '.join(parts)}. Keep what they share with benchmark=, split= or"
                " subsets=[...], leave the task out with tasks=, or score them alike."
            )


def material_notes(frame: pd.DataFrame, designs: Iterable[Design], benchmark: Benchmark | None) -> list[str]:
    """Name the splits of the scores, tasks that a benchmark has and these lack, data sets of several revisions, and
    what our evaluation left out of the files of a task."""
    notes = _split_notes(frame, benchmark)
    if benchmark:
        count, absent = len(benchmark.tasks), sorted(set(benchmark.tasks) - set(frame["task"]))
        compared = f"{count - len(absent)} of the {count} tasks of {benchmark.name} are compared"
        note = f"{compared}; not {listed(absent, 60)}: no mean here is that of the whole benchmark."
        notes += [note] if absent else []
    revisions = frame[frame["dataset"] != ""].groupby("task", sort=False)["dataset"].nunique()
    several = revisions.index[revisions > 1]
    if len(several):
        what = f"The data set revision differs between designs on {listed(several)}"
        notes.append(f"{what}: these scores may not compare.")
    return notes + _left_out_notes(designs, set(frame["task"]))


def _split_notes(frame: pd.DataFrame, benchmark: Benchmark | None) -> list[str]:
    tasks = frame[frame["split"] != ""].groupby("split")["task"].unique()
    if tasks.empty:
        return []
    usual, *others = sorted(tasks.index, key=lambda split: -len(tasks[split]))
    exceptions = [f"{' and '.join(split.split(';'))} on {listed(tasks[split])}" for split in others]
    words = " and ".join(usual.split(";"))
    said = f"Scores are of the split {words}, but of {'; of '.join(exceptions)}" if exceptions else ""
    which = f", as {benchmark.name} of mteb {benchmark.mteb} has it" if benchmark else ""
    return [f"{said or f'Every score is of the split {words}'}{which}."]


def _left_out_notes(designs: Iterable[Design], tasks: set[str]) -> list[str]:
    counts: dict[str, dict[str, int]] = {}
    for run in (run for design in designs for run in design.runs):
        counts |= (run.manifest.get("evaluation") or {}).get("left_out") or {}
    parts = [
        f"{task}: {', '.join(f'{count} {what}' for what, count in of_task.items())}"
        for task, of_task in counts.items()
        if task in tasks
    ]
    return [f"Left out of a task's files, since missing or empty there: {'; '.join(parts)}."] if parts else []
