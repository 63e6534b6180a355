"""The type of a task, and the source of its texts: by mteb's names, or from a file of the user's."""

import csv
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from analysis.names import suggest
from cli.errors import UserError
from records.files import read_object

TABLE = Path(__file__).with_name("mteb_tasks.csv")
RULES = Path(__file__).with_name("task_sources.csv")
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
    for task, entry in read_object(path, 'Write a JSON file such as {"MyTask": "Retrieval"}.').items():
        kind = entry.get("type") if isinstance(entry, dict) else entry
        if not isinstance(kind, str) or not kind:
            raise UserError(f'{path}: task {task!r} has no type. Write {{"{task}": {{"type": "Retrieval"}}}}.')
        types[task] = kind
    return types


def type_of(task: str, own_types: dict[str, str], source: str) -> str:
    """Return the type of a task. Raises UserError with the mend where neither `own_types` nor mteb's table knows it."""
    kind = own_types.get(task) or known_types().get(task)
    if not kind:
        raise UserError(
            f"{source}: the type of task {task!r} is not known. {suggest(task, known_types())} For a task of your own"
            f' give task_types=<file> with {{"{task}": {{"type": "Retrieval"}}}}; a tasks.json beside results does too,'
            " or a column type in a long csv."
        )
    return kind


def sort_types(types: set[str], wanted: Sequence[str] = ()) -> list[str]:
    """Return the types in the order asked for, else in the leaderboard's."""
    first = wanted or LEADERBOARD
    return sorted(types, key=lambda kind: (first.index(kind) if kind in first else len(first), kind))


@cache
def _rules() -> list[tuple[re.Pattern[str], str]]:
    with RULES.open(encoding="utf-8", newline="") as lines:
        return [(re.compile(row["pattern"]), row["becomes"]) for row in csv.DictReader(lines)]


def source_of(task: str) -> str:
    """Return the source of a task by its name; task_sources.csv holds the rules, applied in turn to the whole name.

    They take away versions, HardNegatives, Nano, translations and P2P or S2S; parts of CQADupstack are one source, and
    so are the tasks of one package of the docstrings (Docs<Package><Type>). Other names are sources of their own.
    """
    for pattern, becomes in _rules():
        match = pattern.fullmatch(task)
        task = match.expand(becomes) if match else task
    return task


def clusters_of(cluster: str, tasks: Iterable[str]) -> dict[str, str]:
    """Return task -> cluster: by source for "source" or "", else as a file says, a JSON object {task: cluster}.

    A task that the file does not name stands alone. Raises UserError where the file names none of the tasks.
    """
    if cluster in ("", "source"):
        return {task: source_of(task) for task in tasks}
    wanted = list(tasks)
    named = read_object(Path(cluster), 'Write a JSON file such as {"MyTask": "its source"}.')
    if not set(wanted) & set(named):
        first = next(iter(named), "")
        raise UserError(f"{cluster} names none of the {len(wanted)} tasks compared. {suggest(first, wanted)}")
    return {task: str(named.get(task, f"{task} (alone)")) for task in wanted}
