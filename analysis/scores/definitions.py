"""Splits and subsets of a task that count: those of a benchmark of mteb, or of mteb's own metadata of the task.

conf/tables/benchmark.yaml names some tasks of such a benchmark, as evaluate.py takes them.

`mteb_definitions.json.gz` is written by `python benchmarks/make_mteb_tasks.py`, which asks the installed mteb; this
package itself imports no mteb.
"""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from analysis.names import suggest
from cli.compose import options
from cli.errors import UserError

FILE = Path(__file__).with_name("mteb_definitions.json.gz")


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
    value: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))
    return value


def definition_of(task: str) -> Definition | None:
    """Return what mteb scores of a task when no benchmark narrows it down; None for a task that it does not know."""
    whole = _every()["tasks"].get(task)
    return Definition(tuple(whole["splits"]), tuple(whole["subsets"])) if whole else None


def parts_of(task: str) -> tuple[str, ...]:
    """Return the tasks whose mean an aggregate is, such as CQADupstackRetrieval of its twelve forums; () for others."""
    return tuple(_every()["parts"].get(task, ()))


def benchmark_of(name: str) -> Benchmark:
    """Return the benchmark of that name or alias, ours before mteb's.

    Raises UserError with the nearest names for an unknown one, and for a task of ours that mteb's benchmark lacks.
    """
    of_mteb = {key: about for key, about in options("benchmark").items() if about.get("kind") == "mteb"}
    ours = {key: about for key, about in of_mteb.items() if about.get("tasks")}  # benchmark=mteb itself names none
    if name not in ours:
        return _of_mteb(name, ours)
    whole, tasks = _of_mteb(ours[name]["name"], ours), ours[name]["tasks"]
    for task in tasks:
        if task not in whole.tasks:
            where = f"{name} of conf/tables/benchmark.yaml"
            raise UserError(f"{where}: {whole.name} has no task {task}. {suggest(task, whole.tasks)}")
    return replace(whole, name=f"{name} of {whole.name}", tasks={task: whole.tasks[task] for task in tasks})


def _of_mteb(name: str, ours: Iterable[str]) -> Benchmark:
    every = _every()["benchmarks"]
    aliases = {alias: known for known, about in every.items() for alias in about["aliases"]}
    known = aliases.get(name, name)
    if known not in every:
        hint = suggest(name, [*every, *ours])
        raise UserError(f"benchmark={name} is no benchmark of texts that mteb knows, nor a choice of its tasks. {hint}")
    tasks = {}
    for task, narrowed in every[known]["tasks"].items():
        subsets = narrowed["subsets"]
        subsets = _every()["tasks"][task]["subsets"] if subsets is None else subsets
        tasks[task] = Definition(tuple(narrowed["splits"]), tuple(subsets))
    return Benchmark(known, tasks, _every()["mteb"])
