"""Splits and subsets that the scores are of: checked to be alike for all that is compared, and stated in notes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pandas as pd

from analysis.manifests.designs import Design, Row, ScoreSource
from analysis.names import listed
from analysis.scores.definitions import Benchmark, definition_of, parts_of
from analysis.scores.long_table import counted
from cli.errors import UserError

Groups = dict[str, dict[str, list[Row]]]  # task -> value -> rows that have it


def within(source: ScoreSource, benchmark: Benchmark | None) -> ScoreSource:
    """Return the source with the tasks of the benchmark alone; a note counts the others. Without one, the source.

    Raises UserError for a score that says a split or subsets (a csv may) other than those of the benchmark.
    """
    if benchmark is None:
        return source
    rows = [row for row in source.rows if row.task in benchmark.tasks]
    for row in rows:
        definition = benchmark.tasks[row.task]
        for what, asked in (("split", definition.splits), ("subsets", definition.subsets)):
            names = getattr(row, what)
            if names and set(names.split(";")) != set(asked) and names != counted(";".join(asked)):
                raise UserError(
                    f"{row.source}: the score of {row.task} for {row.model} is of the {what} {_short(names)}, and"
                    f" {benchmark.name} scores {listed(asked, 4)}. Score it so, or leave it out."
                )
    gone = sorted({row.task for row in source.rows} - set(benchmark.tasks))
    left = f"{source.name}: {len(gone)} tasks that are not of {benchmark.name} were left out: {listed(gone)}."
    silent = bool(rows) and not any(row.split or row.problem for row in rows)
    unsaid = f"{source.name} does not say of which split and subsets its scores are: taken for {benchmark.name}'s."
    return replace(source, rows=rows, notes=[*source.notes, *[left] * bool(gone), *[unsaid] * silent])


def without_holes(frame: pd.DataFrame, rows: Sequence[Row], policy: str) -> tuple[pd.DataFrame, list[str]]:
    """Return `frame` without the scores that cannot be used, and a note on them.

    frame: of what is compared; its index is the position in `rows`. policy: "fail", "drop_tasks" or "drop_models": the
    latter two take a score of another split for no score at all. Raises UserError for any other score with a problem.
    """
    shown = [rows[position] for position in frame.index]
    holes = [row for row in shown if row.problem]
    if not holes:
        return frame, []
    refused = next((row for row in holes if policy == "fail" or not row.lacking), None)
    if refused:
        raise UserError(refused.problem)
    models: dict[str, dict[str, None]] = defaultdict(dict)
    for row in holes:
        models[row.task][row.model] = None
    who = "; ".join(f"{task}: {listed(names, 3)}" for task, names in models.items())
    note = f"Taken for not scored, since what counts (split, subsets) has no score there: {who}."
    return frame[[not row.problem for row in shown]], [note]


def without_parts(frame: pd.DataFrame, compared: Iterable[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return `frame` without the parts of aggregates, which would count twice, and a note that names them.

    Only where every unit (design, seed) of the designs compared has the aggregate: else its parts are all there is.
    """
    shown = frame[frame["design"].isin(list(compared))]
    units = set(zip(shown["design"], shown["seed"], strict=True))
    tasks = dict.fromkeys(shown["task"].unique())
    notes, gone = [], set()
    for task in tasks:
        of_task = parts_of(task)
        parts = tasks.keys() & of_task
        if (
            parts
            and set(shown.loc[shown["task"] == task, ["design", "seed"]].itertuples(index=False, name=None)) == units
        ):
            gone |= parts
            left = listed(sorted(parts), 3)
            notes.append(f"{task} is the mean of {len(of_task)} tasks, so these are left out: {left}.")
    return frame[~frame["task"].isin(gone)], notes


def check_alike(rows: Iterable[Row]) -> None:
    """Raise UserError where designs have a task on other splits or subsets: a mean over others is another score."""
    for task, kinds in _by_task(rows, lambda row: row.split and f"{row.split}: {row.subsets}").items():
        if len(kinds) > 1:
            parts = [
                f"{_together(alike[0].split)} ({_short(alike[0].subsets)})"
                f" for {listed(dict.fromkeys(row.model for row in alike), 4)}"
                for alike in kinds.values()
            ]
            raise UserError(
                f"{task} was scored on {' and '.join(parts)}. Keep what they share with benchmark=, split= or"
                " subsets=[...], leave the task out with tasks=, or score them alike."
            )


def material_notes(rows: Sequence[Row], benchmark: Benchmark | None) -> list[str]:
    """Name the splits and subsets of the scores, the tasks where mteb's choice differs, and those a benchmark lacks."""
    notes = _split_notes(rows, benchmark)
    counts = {task: next(iter(kinds)).count(";") + 1 for task, kinds in _by_task(rows, lambda row: row.subsets).items()}
    several = [f"{task} ({count})" for task, count in counts.items() if count > 1]
    if several:
        notes.append(f"Means over several subsets (languages): {listed(several)}.")
    notes += _missing_notes(rows, benchmark) if benchmark else _default_notes(rows)
    differing = [task for task, kinds in _by_task(rows, lambda row: row.dataset).items() if len(kinds) > 1]
    if differing:
        tasks = listed(differing)
        notes.append(f"The data set revision differs between designs on {tasks}: these scores may not compare.")
    return notes


def left_out_notes(designs: Iterable[Design], tasks: Iterable[str]) -> list[str]:
    """Count what our evaluation left out of the files of a task, since it was missing or empty there."""
    counts: dict[str, dict[str, int]] = {}
    for run in (run for design in designs for run in design.runs):
        counts |= (run.manifest.get("evaluation") or {}).get("left_out") or {}
    parts = [
        f"{task}: {', '.join(f'{count} {what}' for what, count in counts[task].items())}"
        for task in tasks
        if task in counts
    ]
    return [f"Left out of a task's files, since missing or empty there: {'; '.join(parts)}."] if parts else []


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
    note = f"Without a benchmark (benchmark=), mteb's own metadata would score otherwise: {listed(otherwise)}."
    return [note] if otherwise else []


def _missing_notes(rows: Sequence[Row], benchmark: Benchmark) -> list[str]:
    count, absent = len(benchmark.tasks), sorted(set(benchmark.tasks) - {row.task for row in rows})
    compared = f"{count - len(absent)} of the {count} tasks of {benchmark.name} are compared"
    note = f"{compared}; not {listed(absent, 60)}: no mean here is that of the whole benchmark."
    return [note] if absent else []


def _by_task(rows: Iterable[Row], value: Callable[[Row], str]) -> Groups:
    """Return task -> value -> the rows that have it; rows without a value are left out."""
    groups: Groups = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if value(row):
            groups[row.task][value(row)].append(row)
    return groups


def _short(names: str) -> str:
    return listed(names.split(";"), 4)
