"""What each score is of, its splits and subsets: alike for all that is compared, and said."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.manifests.designs import Design, Reading, Row
from analysis.names import listed
from analysis.scores.definitions import Benchmark, definition_of, parts_of
from analysis.scores.long_table import counted
from cli.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

Groups = dict[str, dict[str, list[Row]]]  # task -> value -> rows that have it


def within(reading: Reading, benchmark: Benchmark | None) -> Reading:
    """Return the reading with the tasks of the benchmark alone; a note counts the others. Without one, the reading.

    Raises UserError for a score that says a split or subsets (a csv may) other than those of the benchmark.
    """
    if benchmark is None:
        return reading
    rows = [row for row in reading.rows if row.task in benchmark.tasks]
    for row in rows:
        _refuse_other(row, benchmark)
    gone = sorted({row.task for row in reading.rows} - set(benchmark.tasks))
    left = f"{reading.source}: {len(gone)} tasks that are not of {benchmark.name} were left out: {listed(gone)}."
    silent = bool(rows) and not any(row.split or row.problem for row in rows)
    unsaid = f"{reading.source} does not say of which split and subsets its scores are: taken for {benchmark.name}'s."
    return replace(reading, rows=rows, notes=[*reading.notes, *[left] * bool(gone), *[unsaid] * silent])


def _refuse_other(row: Row, benchmark: Benchmark) -> None:
    definition = benchmark.tasks[row.task]
    for what, own, theirs in (("split", row.split, definition.splits), ("subsets", row.subsets, definition.subsets)):
        same = set(own.split(";")) == set(theirs) or own == counted(";".join(theirs))
        if own and not same:
            raise UserError(
                f"{row.source}: the score of {row.task} for {row.model} is of the {what} {_short(own)}, and"
                f" {benchmark.name} scores {listed(theirs, 4)}. Score it so, or leave it out."
            )


def without_holes(frame: "pd.DataFrame", rows: Sequence[Row], policy: str) -> tuple["pd.DataFrame", list[str]]:
    """Return `frame` without the scores that cannot be used, and a note on them.

    frame: of what is compared; its index is the position in `rows`. policy: "fail", "drop_tasks" or "drop_models": the
    latter two take a score of another split for no score at all. Raises UserError for any other score with a problem.
    """
    held = [rows[position] for position in frame.index]
    first = next((row for row in held if row.problem and (policy == "fail" or not row.lacking)), None)
    if first:
        raise UserError(first.problem)
    holes: dict[str, list[str]] = defaultdict(list)
    for row in held:
        if row.problem:
            holes[row.task].append(row.model)
    if not holes:
        return frame, []
    who = "; ".join(f"{task}: {listed(dict.fromkeys(models), 3)}" for task, models in holes.items())
    note = f"Taken for not scored, since what counts (split, subsets) has no score there: {who}."
    return frame[[not row.problem for row in held]], [note]


def without_parts(frame: "pd.DataFrame", compared: Iterable[str]) -> tuple["pd.DataFrame", list[str]]:
    """Return `frame` without the parts of aggregates, which would count twice, and a note that names them.

    Only where every unit (design, seed) of the designs compared has the aggregate: else its parts are all there is.
    """
    own = frame[frame["design"].isin(list(compared))]
    units = set(zip(own["design"], own["seed"], strict=True))
    held = dict.fromkeys(own["task"])
    notes, gone = [], set()
    for task in held:
        parts = set(parts_of(task)) & held.keys()
        if not parts:
            continue
        rows = own[own["task"] == task]
        if set(zip(rows["design"], rows["seed"], strict=True)) == units:
            gone |= parts
            notes.append(
                f"{task} is the mean of {len(parts_of(task))} tasks, so these are left out: {listed(sorted(parts), 3)}."
            )
    return frame[~frame["task"].isin(gone)], notes


def check_alike(rows: Iterable[Row]) -> None:
    """Raise UserError where designs have a task on other splits or subsets: a mean over others is another score."""
    for task, kinds in _by_task(rows, lambda row: f"{row.split}: {row.subsets}" if row.split else "").items():
        if len(kinds) > 1:
            said = " and ".join(f"{_said(kind)} for {_models(own)}" for kind, own in kinds.items())
            raise UserError(
                f"{task} was scored on {said}. Keep what they share with benchmark=, split= or subsets=[...], leave the"
                " task out with tasks=, or score them alike."
            )


def material_notes(rows: Sequence[Row], benchmark: Benchmark | None) -> list[str]:
    """Say which splits and subsets the scores are of, where mteb's own choice differs, and what a benchmark lacks."""
    notes = [*_split_notes(rows, benchmark), *_subset_notes(rows)]
    notes += _missing_notes(rows, benchmark) if benchmark else _default_notes(rows)
    differing = [task for task, kinds in _by_task(rows, lambda row: row.dataset).items() if len(kinds) > 1]
    if differing:
        of = listed(differing)
        notes.append(f"The data set revision differs between designs on {of}: these scores may not compare.")
    return notes


def left_out_notes(designs: Iterable[Design], tasks: Iterable[str]) -> list[str]:
    """Say what our evaluation left out of the files of a task, where documents or judgements were missing or empty."""
    held = [_object(run.manifest.get("evaluation")) for design in designs for run in design.runs]
    said = {task: counts for evaluation in held for task, counts in _object(evaluation.get("left_out")).items()}
    parts = [
        f"{task}: {', '.join(f'{count} {what}' for what, count in said[task].items())}"
        for task in tasks
        if task in said
    ]
    return [f"Left out of a task's files, since missing or empty there: {'; '.join(parts)}."] if parts else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _split_notes(rows: Sequence[Row], benchmark: Benchmark | None) -> list[str]:
    tasks: dict[str, list[str]] = defaultdict(list)
    for task, kinds in _by_task(rows, lambda row: row.split).items():
        tasks[next(iter(kinds))].append(task)
    if not tasks:
        return []
    usual, *others = sorted(tasks, key=lambda split: -len(tasks[split]))
    source = f", as {benchmark.name} of mteb {benchmark.mteb} defines" if benchmark else ""
    if not others:
        return [f"Every score is of the split {_together(usual)}{source}."]
    but = "; ".join(f"of {_together(split)} on {listed(tasks[split])}" for split in others)
    return [f"Scores are of the split {_together(usual)}, but {but}{source}."]


def _together(split: str) -> str:
    names = split.split(";")
    return names[0] if len(names) == 1 else f"{' and '.join(names)} (their mean)"


def _subset_notes(rows: Sequence[Row]) -> list[str]:
    counts = {}
    for task, kinds in _by_task(rows, lambda row: row.subsets).items():
        counts[task] = len(next(iter(kinds)).split(";"))
    several = [f"{task} ({count})" for task, count in counts.items() if count > 1]
    return [f"Means over several subsets (languages): {listed(several)}."] if several else []


def _default_notes(rows: Sequence[Row]) -> list[str]:
    """Name the tasks that mteb, which scores all splits and subsets of its metadata, would score on others."""
    otherwise = []
    for task, kinds in _by_task(rows, lambda row: row.split).items():
        definition, row = definition_of(task), next(iter(kinds.values()))[0]
        if definition is None:
            continue
        if set(row.split.split(";")) != set(definition.splits):
            otherwise.append(f"{task} on {' and '.join(definition.splits)}")
        elif set(row.subsets.split(";")) != set(definition.subsets):
            otherwise.append(f"{task} on {len(definition.subsets)} subsets")
    if not otherwise:
        return []
    return [f"Without a benchmark (benchmark=), mteb's own metadata would score otherwise: {listed(otherwise)}."]


def _missing_notes(rows: Sequence[Row], benchmark: Benchmark) -> list[str]:
    absent = sorted(set(benchmark.tasks) - {row.task for row in rows})
    if not absent:
        return []
    held = f"{len(benchmark.tasks) - len(absent)} of the {len(benchmark.tasks)} tasks of {benchmark.name} are compared"
    return [f"{held}; not {listed(absent, 60)}: no mean here is that of the whole benchmark."]


def _by_task(rows: Iterable[Row], value: Callable[[Row], str]) -> Groups:
    """Return task -> value -> the rows that have it; rows without a value are left out."""
    found: Groups = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if value(row):
            found[row.task][value(row)].append(row)
    return found


def _models(rows: list[Row]) -> str:
    return listed(dict.fromkeys(row.model for row in rows), 4)


def _said(kind: str) -> str:
    split, _, subsets = kind.partition(": ")
    return f"{_together(split)} ({_short(subsets)})"


def _short(names: str) -> str:
    return listed(names.split(";"), 4)
