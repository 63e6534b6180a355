"""What is known of tasks: type, source, and the splits and subsets that their scores are of.

`mteb_definitions.json.gz` and `mteb_tasks.csv` are written by `python benchmarks/make_mteb_tasks.py`, which asks the
installed mteb; this package itself imports no mteb. conf/benchmark names some tasks of a benchmark of mteb.
"""

import csv
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from analysis.names import suggest
from cli.compose import options
from cli.errors import UserError
from records.files import read_object

TABLE = Path(__file__).with_name("mteb_tasks.csv")
RULES = Path(__file__).with_name("task_sources.csv")
DEFINITIONS = Path(__file__).with_name("mteb_definitions.json.gz")
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
            f' write {{"{task}": "Retrieval"}} to tasks.json beside the scores, or a column type to a long csv.'
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


@dataclass(frozen=True)
class Definition:
    """The splits and subsets (languages) that a score is of, both by mteb's names."""

    splits: tuple[str, ...]
    subsets: tuple[str, ...]


@dataclass(frozen=True)
class Benchmark:
    """The tasks of a benchmark of mteb, or some, each with what is scored of it. mteb: version that defines it."""

    name: str
    tasks: dict[str, Definition]
    mteb: str


@cache
def _every() -> dict[str, Any]:
    value: dict[str, Any] = json.loads(gzip.decompress(DEFINITIONS.read_bytes()))
    return value


def definition_of(task: str) -> Definition | None:
    """Return what mteb scores of a task when no benchmark narrows it down; None for a task that it does not know."""
    whole = _every()["tasks"].get(task)
    return Definition(tuple(whole["splits"]), tuple(whole["subsets"])) if whole else None


def parts_of(task: str) -> tuple[str, ...]:
    """Return the tasks whose mean an aggregate is, such as CQADupstackRetrieval of its twelve forums; () for others."""
    return tuple(_every()["parts"].get(task, ()))


def benchmark_of(name: str) -> Benchmark:
    """Return the benchmark of that name or alias, ours before mteb's. Raises UserError for an unknown one."""
    of_mteb, named = _every()["benchmarks"], options("benchmark")
    ours = {key: about for key, about in named.items() if about.get("kind") == "mteb" and about.get("tasks")}
    wanted = ours[name]["name"] if name in ours else name
    known = next((key for key, about in of_mteb.items() if wanted in (key, *about["aliases"])), None)
    if known is None:
        hint = suggest(name, [*of_mteb, *ours])
        raise UserError(f"benchmark={name} is no benchmark of texts that mteb knows, nor a choice of its tasks. {hint}")
    tasks = {task: _narrowed(task, about) for task, about in of_mteb[known]["tasks"].items()}
    if name not in ours:
        return Benchmark(known, tasks, _every()["mteb"])
    return Benchmark(f"{name} of {known}", {task: tasks[task] for task in ours[name]["tasks"]}, _every()["mteb"])


def _narrowed(task: str, about: dict[str, Any]) -> Definition:
    subsets = _every()["tasks"][task]["subsets"] if about["subsets"] is None else about["subsets"]
    return Definition(tuple(about["splits"]), tuple(subsets))
