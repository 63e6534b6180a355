"""The tasks and designs without holes: designs are compared on the same tasks, for every seed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.manifests.designs import Design
from analysis.names import listed
from analysis.scores.tasks import parts_of
from cli.errors import UserError


@dataclass(frozen=True)
class Complete:
    """The comparison: in `frame` every one of `designs` has every one of `tasks`, for each of its seeds."""

    frame: pd.DataFrame
    designs: list[str]
    tasks: list[str]
    notes: list[str]


def policy_for(missing: str, designs: Iterable[Design]) -> str:
    """Return fail, drop_tasks or drop_models. "auto": a hole among our own runs, which have manifests, is a scoring
    that has not finished, so it fails; published scores have holes that nobody here can fill, so tasks are dropped.
    """
    if missing != "auto":
        return missing
    return "fail" if any(design.runs for design in designs) else "drop_tasks"


def complete(frame: pd.DataFrame, designs: list[str], policy: str) -> Complete:
    """Return the designs and tasks without holes, each in the order given, and notes on what was dropped.

    frame: the long table, of untrained references too; designs: labels to compare; policy: "fail", "drop_tasks" (the
    tasks that not every design has) or "drop_models" (the designs that lack a task). Raises UserError where there is a
    hole and the policy is "fail", or where fewer than two tasks or designs remain.
    """
    frame, notes = _usable(frame, policy)
    frame, more = _without_parts(frame, designs)
    have = _has(frame, designs)
    tasks, kept = list(have.columns), designs
    if len(tasks) == 1:
        raise UserError(f"Only one task is left: {tasks[0]}. A paired test needs two; widen types= or tasks=.")
    if not have.all(axis=None):
        tasks, kept, lost = _without_holes(have, designs, policy)
        more.append(lost)
    dropped = set(designs) - set(kept)
    return Complete(frame[~frame["design"].isin(dropped) & frame["task"].isin(tasks)], kept, tasks, notes + more)


def _usable(frame: pd.DataFrame, policy: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the scores that there are, and a note on files of tasks without one: a hole, which "fail" refuses."""
    odd = frame[frame["problem"] != ""]
    if odd.empty:
        return frame, []
    if policy == "fail":
        raise UserError(odd["problem"].iloc[0])
    who = "; ".join(f"{task}: {listed(m.unique(), 3)}" for task, m in odd.groupby("task", sort=False)["model"])
    first = f"The first: {odd['problem'].iloc[0]}"
    return frame[frame["problem"] == ""], [f"Without a score of what counts (split, subsets): {who}. {first}"]


def _without_parts(frame: pd.DataFrame, designs: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return `frame` without the parts of aggregates, which would count twice, and a note that names them.

    Only where every unit (design, seed) of the designs compared has the aggregate: else its parts are all there is.
    """
    have = _has(frame, designs)
    notes, gone = [], set[str]()
    for task in have.columns[have.all()]:
        parts = set(parts_of(task)) & set(have.columns)
        if parts:
            gone |= parts
            left = f"so these are left out: {listed(sorted(parts), 3)}"
            notes.append(f"{task} is the mean of {len(parts_of(task))} tasks, {left}.")
    return frame[~frame["task"].isin(gone)], notes


def _has(frame: pd.DataFrame, designs: Sequence[str]) -> pd.DataFrame:
    """Return (design, seed) x tasks: whether there is a score. A design without any is one row."""
    shown = frame[frame["design"].isin(designs)]
    if shown.empty:
        raise UserError(f"No score of {listed(designs)} is left. Widen types= or tasks=.")
    have = shown.groupby(["design", "seed", "task"]).size().unstack("task").notna()
    none = [(design, "") for design in designs if design not in set(shown["design"])]
    units = [*dict.fromkeys(zip(shown["design"], shown["seed"], strict=True)), *none]
    return have.reindex(index=pd.MultiIndex.from_tuples(units), columns=shown["task"].unique(), fill_value=False)


def _without_holes(have: pd.DataFrame, designs: list[str], policy: str) -> tuple[list[str], list[str], str]:
    """Return the tasks and designs that the policy keeps, and a note on the others."""
    tasks, shared = list(have.columns), list(have.columns[have.all()])
    holed = have[~have.all(axis=1)]
    whole = [design for design in designs if design not in holed.index.get_level_values(0)]
    units = [(_unit(*unit), have.columns[~row]) for unit, row in zip(holed.index, holed.to_numpy(), strict=True)]
    if policy == "fail":
        first = "; ".join(f"{name} lacks {listed(missing, 4)}" for name, missing in units[:3])
        more = f"; and {len(units) - 3} more runs lack some" if len(units) > 3 else ""
        raise UserError(
            f"The task sets differ: {first}{more}. Score them, choose with models= or tasks=, or compare on the tasks"
            " that all have with missing=drop_tasks, or the designs that have all tasks with missing=drop_models."
        )
    sizes = f"{len(shared)} of {len(tasks)} tasks are shared, and {len(whole)} of {len(designs)} designs have them all"
    if len(shared if policy == "drop_tasks" else whole) < 2:
        raise UserError(f"Too little is left with missing={policy}: {sizes}. Choose with models= or tasks=.")
    who = listed([f"{name} lacks {len(missing)}" for name, missing in units], 6)
    if policy == "drop_models":
        return tasks, whole, f"missing=drop_models: {sizes}; the others were dropped ({who})."
    gone = ", ".join(task for task in tasks if task not in shared)
    return shared, designs, f"missing=drop_tasks: {sizes}; the others were dropped ({who}): {gone}."


def _unit(design: str, seed: str) -> str:
    return f"{design} (seed {seed})" if seed else design
