"""Splits and subsets of a task that count: those of a benchmark of mteb, or of mteb's own metadata of the task.

`mteb_definitions.json.gz` is written by `python benchmarks/make_mteb_tasks.py`, which asks the installed mteb; this
package itself imports no mteb.
"""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from analysis.names import suggest
from cli.errors import UserError

FILE = Path(__file__).with_name("mteb_definitions.json.gz")


@dataclass(frozen=True)
class Definition:
    """The splits and subsets (languages) that a score is of, both by mteb's names."""

    splits: tuple[str, ...]
    subsets: tuple[str, ...]


@dataclass(frozen=True)
class Benchmark:
    """The tasks of a benchmark of mteb, each with what is scored of it. mteb: version whose definition this is."""

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
    """Return the benchmark of that name or alias. Raises UserError with the nearest names for an unknown one."""
    every = _every()["benchmarks"]
    aliases = {alias: known for known, about in every.items() for alias in about["aliases"]}
    known = aliases.get(name, name)
    if known not in every:
        raise UserError(f"benchmark={name} is no benchmark of texts that mteb knows. {suggest(name, every)}")
    tasks = {}
    for task, narrowed in every[known]["tasks"].items():
        subsets = narrowed["subsets"]
        subsets = _every()["tasks"][task]["subsets"] if subsets is None else subsets
        tasks[task] = Definition(tuple(narrowed["splits"]), tuple(subsets))
    return Benchmark(known, tasks, _every()["mteb"])
