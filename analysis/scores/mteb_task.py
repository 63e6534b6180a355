"""The score of one mteb TaskResult file: the plain mean of `main_score` over the splits and subsets that count."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from analysis.names import listed
from analysis.scores.tasks import Benchmark, definition_of
from cli.errors import UserError
from records.files import read_object
from records.fingerprint import of_value

Entries = list[dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """The score of a model, with a seed ("" where none is known), on a task."""

    model: str
    seed: str
    task: str
    score: float
    source: str  # file, or file and line, for error messages
    type: str = ""  # "" where the file does not say
    split: str = ""  # what it is a score of, "" where the source does not say; of several: validation;test
    subsets: str = ""  # of several, which are averaged: en-en;es-es
    dataset: str = ""  # revision of the data set
    problem: str = ""  # why there is no score, which is NaN then: a hole in the table


class _NoScoreError(Exception):
    """What counts was not scored, or its score is no number."""


def read_task(
    path: Path,
    model: str,
    seed: str,
    *,
    split: str = "",
    subsets: Sequence[str] = (),
    benchmark: Benchmark | None = None,
    written: str | None = None,
) -> Row:
    """Return the row of one task file, of the scores that the benchmark defines, or of `split` and `subsets` (globs).

    Without these: all subsets of test, where the file has it and mteb's metadata of the task do not name other splits
    alone, or of the only split. The mean over splits and subsets, each (split, subset) counting once, is mteb's own
    rule (`TaskResult.get_score`). Where there are no such scores, or one is no finite number, the row has a `problem`.
    written: sha256 of its scores as the manifest beside them states it. Raises UserError for a file that is no result,
    or whose scores are others.
    """
    result = read_object(path, "Remove the file, or score the task again.")
    splits = result.get("scores")
    if not isinstance(splits, dict) or not splits:
        raise UserError(f'{path} is no mteb result: it has no "scores". Remove the file, or score the task again.')
    if written not in (None, of_value(splits)):
        mend = "Give its evaluate.py command again."
        raise UserError(f"{path} was changed since it was scored: the sha256 of its scores is another. {mend}")
    task = str(result.get("task_name") or path.stem)
    row = Row(model, seed, task, math.nan, str(path), dataset=str(result.get("dataset_revision") or ""))
    try:
        if benchmark and task in benchmark.tasks:
            chosen = _defined(task, splits, benchmark)
        else:
            name = _pick_split(task, splits, split)
            chosen = {name: _pick_subsets(splits[name], subsets)}
        values = [_main_score(entry) for entries in chosen.values() for entry in entries]
    except _NoScoreError as error:
        return replace(row, problem=f"{path}: {error}. Score the task so, or leave it out with tasks=.")
    names = sorted({_subset(entry) for entries in chosen.values() for entry in entries})
    return replace(row, score=math.fsum(values) / len(values), split=";".join(chosen), subsets=";".join(names))


def _defined(task: str, splits: dict[str, Entries], benchmark: Benchmark) -> dict[str, Entries]:
    definition = benchmark.tasks[task]
    chosen = {s: [e for e in splits.get(s, []) if _subset(e) in definition.subsets] for s in definition.splits}
    lacking = [split for split, entries in chosen.items() if len(entries) < len(definition.subsets)]
    if lacking:
        asked = f"{benchmark.name} scores {len(definition.subsets)} subsets of {listed(definition.splits)}"
        raise _NoScoreError(f"{asked}, and of {listed(lacking)} the file lacks some; it has {listed(splits)}")
    return chosen


def _pick_split(task: str, splits: dict[str, Entries], wanted: str) -> str:
    if wanted and wanted not in splits:
        raise _NoScoreError(f"there is no split {wanted!r}, only {listed(splits)}")
    definition = definition_of(task)
    known = [wanted] if wanted else [name for name in splits if definition and name in definition.splits]
    known = known or list(splits)
    if "test" not in known and len(known) > 1:
        raise _NoScoreError(f"it has the splits {listed(splits)} and no test, so say split= or benchmark=")
    return "test" if "test" in known else known[0]


def _pick_subsets(entries: Entries, wanted: Sequence[str]) -> Entries:
    kept = [e for e in entries if not wanted or any(fnmatchcase(_subset(e), glob) for glob in wanted)]
    if not kept:
        raise _NoScoreError(f"it has no score of these subsets, only {listed(map(_subset, entries), 8)}")
    return kept


def _subset(entry: dict[str, Any]) -> str:
    return str(entry.get("hf_subset", "default"))


def _main_score(entry: dict[str, Any]) -> float:
    value = entry.get("main_score")
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _NoScoreError(f"main_score of subset {_subset(entry)!r} is {value}, not a number")
    return float(value)
