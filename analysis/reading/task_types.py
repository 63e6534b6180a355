"""Task -> type: the csv's own column, then a tasks.json, then mteb's registry as it was when the table was made.

`mteb_tasks.csv` (task, type, main_score) is written by `python benchmarks/make_mteb_tasks.py`, which asks the
installed mteb; this package itself imports no mteb.
"""

import csv
from functools import cache
from pathlib import Path

from analysis.names import suggest
from analysis.reading.json_file import load_object
from records.errors import UserError

TABLE = Path(__file__).with_name("mteb_tasks.csv")
# The order of mteb's own leaderboard; other types follow by name.
LEADERBOARD = ("Classification", "Clustering", "PairClassification", "Reranking", "Retrieval", "STS", "Summarization")


@cache
def known_types() -> dict[str, str]:
    """Return task -> type for the text tasks of mteb."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return {row["task"]: row["type"] for row in csv.DictReader(lines)}


def read_types(path: Path) -> dict[str, str]:
    """Read a tasks.json: {task: {"type": ...}} or {task: type}. Raises UserError for an entry without a type."""
    types = {}
    for task, entry in load_object(path).items():
        kind = entry.get("type") if isinstance(entry, dict) else entry
        if not isinstance(kind, str) or not kind:
            raise UserError(f'{path}: task {task!r} has no type. Write {{"{task}": {{"type": "Retrieval"}}}}.')
        types[task] = kind
    return types


def type_of(task: str, own: dict[str, str], source: str) -> str:
    """Return the type of a task. Raises UserError with the mend where neither `own` nor mteb's table knows it."""
    found = own.get(task) or known_types().get(task)
    if not found:
        raise UserError(
            f"{source}: the type of task {task!r} is not known. {suggest(task, known_types())} For a task of your own"
            f' give task_types=<file> with {{"{task}": {{"type": "Retrieval"}}}}; a tasks.json beside results does too,'
            " or a column type in a long csv."
        )
    return found


def sort_types(types: set[str], wanted: tuple[str, ...] = ()) -> list[str]:
    """Return the types in the order asked for, else in the leaderboard's."""
    first = wanted or LEADERBOARD
    return sorted(types, key=lambda kind: (first.index(kind) if kind in first else len(first), kind))
