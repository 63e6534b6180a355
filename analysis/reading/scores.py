"""The long table: one row a (design, seed, task), from all sources, checked."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.names import listed
from analysis.reading.labels import gathered, labels, usual_note
from analysis.reading.rows import Design, Reading, Row
from analysis.reading.task_types import type_of
from records.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["design", "model", "seed", "task", "type", "score", "source"]


@dataclass(frozen=True)
class Scores:
    """`frame` has the columns `COLUMNS`, score in -1..1; `designs`: label -> design, in file order."""

    frame: "pd.DataFrame"
    designs: dict[str, Design]
    notes: tuple[str, ...] = ()


def join(readings: list[Reading], own_types: dict[str, str], allow: tuple[str, ...] = ()) -> Scores:
    """Put the readings into one table. allow: keys in which the seeds of one design may differ.

    Raises UserError for a score that is there twice, a task of unknown type, or a task whose split or subsets
    differ between designs.
    """
    import pandas as pd

    designs: dict[str, Design] = {}
    for model, design in (item for reading in readings for item in reading.designs.items()):
        held = designs.get(model, Design(model=model))
        designs[model] = replace(held if held.runs else design, runs=(*held.runs, *design.runs))
    label = labels(designs.values(), allow)
    types = _types(readings, own_types)
    seen: dict[tuple[str, str, str], Row] = {}
    for row in (row for reading in readings for row in reading.rows):
        other = seen.setdefault((row.model, row.seed, row.task), row)
        if other is not row:
            seed = f" (seed {row.seed})" if row.seed else ""
            raise UserError(
                f"{row.model}{seed} has two scores on {row.task}: {other.source} and {row.source}. Remove one of them."
            )
    notes = [note for reading in readings for note in reading.notes] + _dataset_notes(seen.values())
    notes += usual_note(designs.values())
    _same_material(list(seen.values()))
    records = [(label[r.model], r.model, r.seed, r.task, types[r.task], r.score, r.source) for r in seen.values()]
    return Scores(pd.DataFrame(records, columns=COLUMNS), gathered(designs, label), tuple(notes))


def _types(readings: list[Reading], own_types: dict[str, str]) -> dict[str, str]:
    """Return task -> type over all readings; two that disagree are refused."""
    known = {task: kind for reading in readings for task, kind in reading.types.items()} | own_types
    types: dict[str, str] = {}
    for reading in readings:
        for row in reading.rows:
            kind = row.type or types.get(row.task) or type_of(row.task, known, row.source)
            if types.setdefault(row.task, kind) != kind:
                raise UserError(
                    f"{row.source}: task {row.task} has the type {kind}, elsewhere {types[row.task]}. Mend one."
                )
    return types


def _by_task(rows: Any, value: Callable[[Row], str]) -> dict[str, dict[str, Row]]:
    """Return task -> value -> one row that has it; rows without a value are left out."""
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if value(row):
            found[row.task].setdefault(value(row), row)
    return found


def _same_material(rows: list[Row]) -> None:
    """A mean over other subsets or another split is another score: such designs are not compared."""
    for task, kinds in _by_task(rows, lambda row: row.scored_on).items():
        if len(kinds) > 1:
            (one, first), (two, second) = list(kinds.items())[:2]
            raise UserError(
                f"{task} was scored on {_short(one)} for {first.model} and on {_short(two)} for {second.model}."
                " Keep what they share with subsets=[...] or split=, or score them alike."
            )


def _short(scored_on: str) -> str:
    split, _, subsets = scored_on.partition(": ")
    return f"{split} ({listed(subsets.split(','), 4)})"


def _dataset_notes(rows: Any) -> list[str]:
    kinds = _by_task(rows, lambda row: row.dataset)
    differing = [task for task, revisions in kinds.items() if len(revisions) > 1]
    if not differing:
        return []
    return [f"The data set revision differs between designs on {listed(differing)}: these scores may not compare."]
