"""Splits and subsets of a task that count: those of a benchmark of mteb, or of mteb's own metadata of the task.

`mteb_definitions.json.gz` is written by `python benchmarks/make_mteb_tasks.py`, which asks the installed mteb; this
package itself imports no mteb. conf/benchmark names some tasks of such a benchmark.
"""

import gzip
import json
from dataclasses import dataclass
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
