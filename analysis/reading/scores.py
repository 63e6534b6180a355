"""The long table: one row a (design, seed, task), from all sources, checked."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.reading.labels import gathered, labels, usual_note
from analysis.reading.rows import Design, Reading, Row
from analysis.reading.task_types import type_of
from records.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["design", "model", "seed", "task", "type", "score", "split", "subsets", "source"]
NAMED_SUBSETS = 60


@dataclass(frozen=True)
class Scores:
    """`frame` has the columns `COLUMNS`, score in -1..1; `designs`: label -> design, in file order.

    `rows`: what the readers gave; the index of `frame` is the position in it.
    """

    frame: "pd.DataFrame"
    designs: dict[str, Design]
    notes: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


def join(readings: list[Reading], own_types: dict[str, str], allow: tuple[str, ...] = ()) -> Scores:
    """Put the readings into one table. allow: keys in which the seeds of one design may differ.

    Raises UserError for a score that is there twice, or a task of unknown type.
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
    notes = [note for reading in readings for note in reading.notes] + usual_note(designs.values())
    rows = tuple(seen.values())
    records = [
        (label[r.model], r.model, r.seed, r.task, types[r.task], r.score, r.split, r.subsets, r.source) for r in rows
    ]
    return Scores(pd.DataFrame(records, columns=COLUMNS), gathered(designs, label), tuple(notes), rows)


def scores_for_file(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return the long table with the number of subsets in place of names that would fill a page."""
    return frame.assign(subsets=frame["subsets"].map(counted))


def counted(subsets: str) -> str:
    """Return the names of subsets as `Row` has them, or their number where they are many: "376 subsets"."""
    count = subsets.count(";") + 1
    return subsets if count <= NAMED_SUBSETS else f"{count} subsets"


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
