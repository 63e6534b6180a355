"""What is left is whole and alike: designs are compared on the same tasks, splits and subsets, for every seed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from analysis.manifests.designs import Design
from analysis.names import listed
from analysis.scores.long_table import Scores
from analysis.scores.tasks import Benchmark, parts_of
from cli.errors import UserError

Notes = list[str]


def complete(scores: Scores, missing: str) -> Scores:
    """Return the designs and tasks without holes, each in the order given, with notes on what was dropped and on what
    the scores are of.

    missing: "fail", "drop_tasks" (the tasks that not every design has), "drop_models" (the designs that lack a task) or
    "auto". Raises UserError where there is a hole and the policy is "fail", where fewer than two tasks or designs
    remain, and where designs have a task on other splits or subsets.
    """
    designs, policy = list(scores.designs), _policy(missing, scores.designs.values())
    frame, notes = _usable(scores.frame, policy)
    frame, more = _without_parts(frame, designs)
    have = _has(frame, scores.frame, designs)
    tasks, kept, lost = _without_holes(have, designs, policy)
    if len(tasks) == 1:
        raise UserError(f"Only one task is left: {tasks[0]}. A paired test needs two; widen types= or tasks=.")
    if scores.control and scores.control not in kept:
        raise UserError(f"against={scores.control} lacks tasks and was dropped. Choose another, or another missing=.")
    if len(kept) == 1:
        raise UserError(f"Only {kept[0]} has a score of these tasks. A paired test needs two; widen models= or tasks=.")
    frame = frame[frame["design"].isin(kept) & frame["task"].isin(tasks)]
    _check_alike(frame)
    whole = replace(scores, frame=frame, designs={label: scores.designs[label] for label in kept})
    return replace(whole, notes=(*scores.notes, *_of_what(whole), *notes, *more, *lost))


def _policy(missing: str, designs: Iterable[Design]) -> str:
    """Return the policy. "auto": a hole among our own runs, which have manifests, is a scoring that has not finished,
    so it fails; published scores have holes that nobody here can fill, so tasks are dropped."""
    if missing != "auto":
        return missing
    return "fail" if any(design.runs for design in designs) else "drop_tasks"


def _usable(frame: pd.DataFrame, policy: str) -> tuple[pd.DataFrame, Notes]:
    """Return the scores that there are, and a note on the others: holes, the first of which "fail" refuses."""
    odd = frame[frame["problem"] != ""]
    if odd.empty:
        return frame, []
    if policy == "fail" or len(odd) == len(frame):
        raise UserError(odd["problem"].iloc[0])
    who = [f"{task} ({listed(m.unique(), 3)})" for task, m in odd.groupby("task", sort=False)["design"]]
    note = f"Left out, since there is no score of what counts (split, subsets): {listed(who, 12)}."
    return frame[frame["problem"] == ""], [f"{note} The first: {odd['problem'].iloc[0]}"]


def _without_parts(frame: pd.DataFrame, designs: Sequence[str]) -> tuple[pd.DataFrame, Notes]:
    """Return `frame` without the parts of aggregates, which would count twice, and a note that names them.

    Only where every unit (design, seed) that is compared has the aggregate: else its parts are all there is.
    """
    have = _has(frame, frame, designs)
    notes, gone = [], set[str]()
    for task in have.columns[have.all()]:
        parts = set(parts_of(task)) & set(have.columns)
        if parts:
            gone |= parts
            left = f"so these are left out: {listed(sorted(parts), 3)}"
            notes.append(f"{task} is the mean of {len(parts_of(task))} tasks, {left}.")
    return frame[~frame["task"].isin(gone)], notes


def _has(frame: pd.DataFrame, every: pd.DataFrame, designs: Sequence[str]) -> pd.DataFrame:
    """Return (design, seed) x tasks: whether there is a score. A design without any is one row.

    every: rows of all units, of those without a score too.
    """
    if frame.empty:
        raise UserError(f"No score of {listed(designs)} is left. Widen types= or tasks=.")
    have = frame.groupby(["design", "seed", "task"]).size().unstack("task").notna()
    none = [(design, "") for design in designs if design not in set(every["design"])]
    rows = [*dict.fromkeys(zip(every["design"], every["seed"], strict=True)), *none]
    return have.reindex(index=pd.MultiIndex.from_tuples(rows), columns=frame["task"].unique(), fill_value=False)


def _without_holes(have: pd.DataFrame, designs: list[str], policy: str) -> tuple[list[str], list[str], Notes]:
    """Return the tasks and designs that the policy keeps, and notes on the others: a design without any score at all is
    dropped by either policy."""
    if have.all(axis=None):
        return list(have.columns), designs, []
    if policy == "fail":
        _refuse(have)
    some = have.groupby(level=0, sort=False).any().any(axis=1)
    empty = [design for design in designs if not some[design]]
    if empty:
        tasks, kept, notes = _without_holes(have.drop(empty, level=0), [d for d in designs if d not in empty], policy)
        return tasks, kept, [f"Left out, since they have no score of these tasks: {listed(empty)}.", *notes]
    tasks, shared, holed = list(have.columns), list(have.columns[have.all()]), have[~have.all(axis=1)]
    whole = [design for design in designs if design not in holed.index.get_level_values(0)]
    sizes = f"{len(shared)} of {len(tasks)} tasks are shared, and {len(whole)} of {len(designs)} designs have them all"
    if len(shared if policy == "drop_tasks" else whole) < 2:
        raise UserError(f"Too little is left with missing={policy}: {sizes}. Choose with models= or tasks=.")
    counts = zip(holed.index, (~holed).sum(axis=1), strict=True)
    who = listed([f"{_unit(*unit)} lacks {count}" for unit, count in counts])
    note = f"missing={policy}: {sizes}; the others were dropped ({who})"
    if policy == "drop_models":
        return tasks, whole, [f"{note}."]
    return shared, designs, [f"{note}: {', '.join(task for task in tasks if task not in shared)}."]


def _refuse(have: pd.DataFrame) -> None:
    """Raise UserError that names the holes."""
    holed = have[~have.all(axis=1)]
    units = [(_unit(*unit), have.columns[~row]) for unit, row in zip(holed.index, holed.to_numpy(), strict=True)]
    first = "; ".join(f"{name} lacks {listed(missing, 4)}" for name, missing in units[:3])
    more = f"; and {len(units) - 3} more runs lack some" if len(units) > 3 else ""
    raise UserError(
        f"The task sets differ: {first}{more}. Score them, choose with models= or tasks=, or compare on the tasks that"
        " all have with missing=drop_tasks, or the designs that have all tasks with missing=drop_models."
    )


def _unit(design: str, seed: str) -> str:
    return f"{design} (seed {seed})" if seed else design


def _check_alike(frame: pd.DataFrame) -> None:
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


def _of_what(scores: Scores) -> Notes:
    """Name the splits of the scores, tasks that a benchmark has and these lack, several revisions of data sets and
    versions of mteb, and what our evaluation left out of the files of a task."""
    frame, benchmark = scores.frame, scores.benchmark
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
    versions = frame[frame["mteb"] != ""].groupby("mteb")["design"].unique()
    if len(versions) > 1:
        of = "; ".join(f"{version} ({listed(designs, 4)})" for version, designs in versions.items())
        notes.append(f"Scores of several versions of mteb stand in one table, and may not compare: {of}.")
    return notes + _left_out_notes(scores.designs.values(), set(frame["task"]))


def _split_notes(frame: pd.DataFrame, benchmark: Benchmark | None) -> Notes:
    tasks = frame[frame["split"] != ""].groupby("split")["task"].unique()
    if tasks.empty:
        return []
    usual, *others = sorted(tasks.index, key=lambda split: -len(tasks[split]))
    exceptions = [f"{' and '.join(split.split(';'))} on {listed(tasks[split])}" for split in others]
    words = " and ".join(usual.split(";"))
    said = f"Scores are of the split {words}, but of {'; of '.join(exceptions)}" if exceptions else ""
    which = f", as {benchmark.name} of mteb {benchmark.mteb} has it" if benchmark else ""
    return [f"{said or f'Every score is of the split {words}'}{which}."]


def _left_out_notes(designs: Iterable[Design], tasks: set[str]) -> Notes:
    counts: dict[str, dict[str, int]] = {}
    for run in (run for design in designs for run in design.runs):
        counts |= (run.manifest.get("evaluation") or {}).get("left_out") or {}
    parts = [
        f"{task}: {', '.join(f'{count} {what}' for what, count in of_task.items())}"
        for task, of_task in counts.items()
        if task in tasks
    ]
    return [f"Left out of a task's files, since missing or empty there: {'; '.join(parts)}."] if parts else []
