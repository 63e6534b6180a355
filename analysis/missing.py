"""Designs are compared on the same tasks, for every seed; what is dropped for that is said."""

from collections import defaultdict
from typing import TYPE_CHECKING

from analysis.names import listed
from records.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def complete(frame: "pd.DataFrame", designs: list[str], policy: str) -> tuple[list[str], list[str]]:
    """Return the tasks that every (design, seed) has, in file order, and the notes on what was dropped.

    frame: the long table; designs: labels to compare; policy: "fail" or "intersection".
    Raises UserError where the task sets differ and the policy is "fail", or fewer than two tasks remain.
    """
    mine = frame[frame["design"].isin(designs)]
    tasks = list(dict.fromkeys(mine["task"]))
    have: dict[tuple[str, str], set[str]] = defaultdict(set)
    for design, seed, task in zip(mine["design"], mine["seed"], mine["task"], strict=True):
        have[design, seed].add(task)
    absent = [design for design in designs if design not in {unit[0] for unit in have}]
    if absent:
        raise UserError(f"No score of {listed(absent)} is left. Widen types= or tasks=, or leave the design out.")
    lacks = {_unit(*unit): [t for t in tasks if t not in own] for unit, own in have.items() if set(tasks) - own}
    if lacks and policy == "fail":
        first = "; ".join(f"{unit} lacks {listed(missing, 4)}" for unit, missing in list(lacks.items())[:3])
        more = f"; and {len(lacks) - 3} more designs lack some" if len(lacks) > 3 else ""
        raise UserError(
            f"The task sets differ: {first}{more}. Score them, choose with models= or tasks=, or compare on the tasks"
            " they share with missing=intersection."
        )
    kept = [task for task in tasks if all(task in own for own in have.values())]
    if len(tasks) < 2:
        raise UserError(f"Only one task is left: {tasks[0]}. A paired test needs two; widen types= or tasks=.")
    if len(kept) < 2:
        raise UserError(
            f"The {len(designs)} designs share {len(kept)} of {len(tasks)} tasks, too few for a paired test."
            " Choose fewer designs with models=, or score more tasks."
        )
    return kept, _dropped(lacks, tasks, kept)


def _unit(design: str, seed: str) -> str:
    return f"{design} (seed {seed})" if seed else design


def _dropped(lacks: dict[str, list[str]], tasks: list[str], kept: list[str]) -> list[str]:
    gone = [task for task in tasks if task not in kept]
    if not gone:
        return []
    who = "; ".join(f"{unit} lacks {len(missing)}" for unit, missing in lacks.items())
    what = f"{len(gone)} of {len(tasks)} tasks were dropped because not every design has them"
    return [f"missing=intersection: {what} ({who}): {', '.join(gone)}."]
