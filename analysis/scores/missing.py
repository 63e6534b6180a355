"""The tasks and designs without holes: designs are compared on the same tasks, for every seed."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from analysis.manifests.designs import Design
from analysis.names import listed
from cli.errors import UserError


@dataclass(frozen=True)
class Complete:
    """The comparison: every one of `designs` has every one of `tasks`, for each of its seeds."""

    designs: list[str]
    tasks: list[str]
    notes: list[str]


@dataclass(frozen=True)
class _Holes:
    """Designs without a hole are `whole`, tasks without one `shared`. lacks: (design, seed) -> the tasks it has not."""

    designs: list[str]
    tasks: list[str]
    lacks: dict[tuple[str, str], list[str]]
    whole: list[str]
    shared: list[str]


def policy_for(missing: str, designs: Iterable[Design]) -> str:
    """Return fail, drop_tasks or drop_models. "auto": a hole among our own runs, which have manifests, is a scoring
    that has not finished, so it fails; published scores have holes that nobody here can fill, so tasks are dropped.
    """
    if missing != "auto":
        return missing
    return "fail" if any(design.runs for design in designs) else "drop_tasks"


def complete(frame: pd.DataFrame, designs: list[str], policy: str) -> Complete:
    """Return the designs and tasks without holes, each in the order given, and notes on what was dropped.

    frame: the long table; designs: labels to compare; policy: "fail", "drop_tasks" (the tasks that not every design
    has) or "drop_models" (the designs that lack a task). Raises UserError where there is a hole and the policy is
    "fail", or where fewer than two tasks or designs remain.
    """
    holes = _holes(frame, designs)
    if len(holes.tasks) == 1:
        raise UserError(f"Only one task is left: {holes.tasks[0]}. A paired test needs two; widen types= or tasks=.")
    if not holes.lacks:
        return Complete(designs, holes.tasks, [])
    if policy == "fail":
        units = list(holes.lacks.items())
        first = "; ".join(f"{_unit(*unit)} lacks {listed(missing, 4)}" for unit, missing in units[:3])
        more = f"; and {len(units) - 3} more runs lack some" if len(units) > 3 else ""
        raise UserError(
            f"The task sets differ: {first}{more}. Score them, choose with models= or tasks=, or compare on the tasks"
            " that all have with missing=drop_tasks, or the designs that have all tasks with missing=drop_models."
        )
    kept = {"drop_tasks": _without_tasks, "drop_models": _without_models}[policy](holes)
    kinds = dict(zip(frame["task"].tolist(), frame["type"].tolist(), strict=True))
    gone = list(dict.fromkeys(kinds[t] for t in holes.tasks if kinds[t] not in {kinds[k] for k in kept.tasks}))
    lost = [f"No task of {', '.join(gone)} is left, so it is not compared."] if gone else []
    return replace(kept, notes=[*kept.notes, *lost])


def _holes(frame: pd.DataFrame, designs: list[str]) -> _Holes:
    shown = frame[frame["design"].isin(designs)]
    tasks = shown["task"].unique().tolist()
    if not tasks:
        raise UserError(f"No score of {listed(designs)} is left. Widen types= or tasks=.")
    have: dict[tuple[str, str], set[str]] = defaultdict(set)
    for design, seed, task in zip(*(shown[key].tolist() for key in ("design", "seed", "task")), strict=True):
        have[design, seed].add(task)
    have |= {(design, ""): set() for design in designs if design not in {unit[0] for unit in have}}
    lacks = {unit: [task for task in tasks if task not in scored] for unit, scored in have.items()}
    lacks = {unit: missing for unit, missing in lacks.items() if missing}
    lacking, gone = {design for design, _ in lacks}, {task for missing in lacks.values() for task in missing}
    whole = [design for design in designs if design not in lacking]
    return _Holes(designs, tasks, lacks, whole, [task for task in tasks if task not in gone])


def _without_tasks(holes: _Holes) -> Complete:
    kept, whole = holes.shared, len(holes.whole)
    if len(kept) < 2:
        other = f"; missing=drop_models keeps all {len(holes.tasks)} tasks and {whole} designs" if whole > 1 else ""
        raise UserError(
            f"The {len(holes.designs)} designs share {len(kept)} of {len(holes.tasks)} tasks, too few for a paired"
            f" test. Choose fewer designs with models=, or score more tasks{other}."
        )
    gone = [task for task in holes.tasks if task not in kept]
    who = listed([f"{_unit(*unit)} lacks {len(missing)}" for unit, missing in holes.lacks.items()], 6)
    what = f"{len(gone)} of {len(holes.tasks)} tasks were dropped because not every design has them"
    note = f"missing=drop_tasks: {what} ({who}): {', '.join(gone)}."
    if whole > 1:
        note += f" missing=drop_models would keep every task and {whole} of {len(holes.designs)} designs."
    return Complete(holes.designs, kept, [note])


def _without_models(holes: _Holes) -> Complete:
    kept, shared = holes.whole, len(holes.shared)
    if len(kept) < 2:
        other = f", or missing=drop_tasks, which keeps {shared} tasks and all designs" if shared > 1 else ""
        raise UserError(
            f"{len(kept)} of the {len(holes.designs)} designs have all {len(holes.tasks)} tasks, too few to compare."
            f" Choose with models= or tasks={other}."
        )
    lacking: dict[str, set[str]] = defaultdict(set)
    for (design, _), missing in holes.lacks.items():
        lacking[design] |= set(missing)
    what = f"{len(lacking)} of {len(holes.designs)} designs were dropped because they lack some of the"
    who = ", ".join(f"{design} ({len(missing)})" for design, missing in lacking.items())
    return Complete(kept, holes.tasks, [f"missing=drop_models: {what} {len(holes.tasks)} tasks (how many): {who}."])


def _unit(design: str, seed: str) -> str:
    return f"{design} (seed {seed})" if seed else design
