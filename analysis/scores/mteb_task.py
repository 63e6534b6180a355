"""The score of one mteb TaskResult file: the plain mean of `main_score` over the splits and subsets that count."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from analysis.names import listed
from analysis.scores.definitions import Benchmark, Definition, definition_of
from cli.errors import UserError
from records.fingerprint import of_value
from records.foreign_files import read_object

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
    problem: str = ""  # why the score, NaN then, cannot be used; an error if the row is among those compared
    lacking: bool = False  # the problem is that what counts was not scored: a hole


class _UnusableError(Exception):
    """lacking: what counts was not scored."""

    def __init__(self, message: str, lacking: bool = True) -> None:
        super().__init__(message)
        self.lacking = lacking


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
            chosen = _defined(splits, benchmark.tasks[task], f"{benchmark.name} scores {task} on")
        else:
            name = _pick_split(task, splits, split)
            chosen = {name: _pick_subsets(splits[name], subsets)}
        values = [_main_score(entry) for entries in chosen.values() for entry in entries]
    except _UnusableError as error:
        mend = "Score the task so, or leave it out with tasks=."
        return replace(row, problem=f"{path}: {error}. {mend}", lacking=error.lacking)
    names = sorted({_subset(entry) for entries in chosen.values() for entry in entries})
    return replace(row, score=math.fsum(values) / len(values), split=";".join(chosen), subsets=";".join(names))


def _defined(splits: dict[str, Entries], definition: Definition, asks: str) -> dict[str, Entries]:
    gone = [name for name in definition.splits if name not in splits]
    if gone:
        raise _UnusableError(f"{asks} {listed(gone)}, the file has {listed(splits)}")
    chosen = {name: [e for e in splits[name] if _subset(e) in definition.subsets] for name in definition.splits}
    lacking = {subset for entries in chosen.values() for subset in set(definition.subsets) - set(map(_subset, entries))}
    if lacking:
        raise _UnusableError(f"{asks} subsets of which the file has no score: {listed(sorted(lacking), 4)}")
    return chosen


def _pick_split(task: str, splits: dict[str, Entries], wanted: str) -> str:
    if wanted and wanted not in splits:
        raise _UnusableError(f"there is no split {wanted!r}, only {listed(splits)}")
    definition = definition_of(task)
    known = [wanted] if wanted else [name for name in splits if definition and name in definition.splits]
    known = known or list(splits)
    if "test" not in known and len(known) > 1:
        what = f"it has the splits {listed(splits)} and no test, so say split=<name> or benchmark=<name>"
        raise _UnusableError(what, lacking=False)
    return "test" if "test" in known else known[0]


def _pick_subsets(entries: Entries, wanted: Sequence[str]) -> Entries:
    kept = [e for e in entries if not wanted or any(fnmatchcase(_subset(e), glob) for glob in wanted)]
    if entries and not kept:
        raise _UnusableError(f"it has none of subsets={','.join(wanted)}, only {listed(map(_subset, entries), 8)}")
    if not kept:
        raise _UnusableError("it has an empty list of scores", lacking=False)
    return kept


def _subset(entry: dict[str, Any]) -> str:
    return str(entry.get("hf_subset", "default"))


def _main_score(entry: dict[str, Any]) -> float:
    value = entry.get("main_score")
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _UnusableError(f"main_score of subset {_subset(entry)!r} is {value}, not a number", lacking=False)
    return float(value)
