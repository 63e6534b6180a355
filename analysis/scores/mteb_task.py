"""The score of one mteb TaskResult file: the plain mean of `main_score` over the splits and subsets that count."""

import math
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from analysis.manifests.designs import Row
from analysis.names import listed
from analysis.scores.definitions import Benchmark, definition_of
from cli.errors import UserError
from records.fingerprint import of_value
from records.foreign_files import read_object

Entries = list[dict[str, Any]]
Globs = tuple[str, ...]


class UnusableScoreError(UserError):
    """The score of a whole file cannot be used. lacking: what counts was not scored."""

    def __init__(self, message: str, lacking: bool = False) -> None:
        super().__init__(message)
        self.lacking = lacking


def read_task(
    path: Path,
    model: str,
    seed: str,
    *,
    split: str = "",
    subsets: Globs = (),
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
            chosen = _defined(path, task, splits, benchmark)
        else:
            name = _pick_split(path, task, splits, split)
            chosen = {name: _pick_subsets(path, _listed(path, splits[name]), subsets)}
        values = [_main_score(path, entry) for entries in chosen.values() for entry in entries]
    except UnusableScoreError as error:
        return replace(row, problem=str(error), lacking=error.lacking)
    names = sorted({_subset(entry) for entries in chosen.values() for entry in entries})
    return replace(row, score=math.fsum(values) / len(values), split=";".join(chosen), subsets=";".join(names))


def _defined(path: Path, task: str, splits: dict[str, Any], benchmark: Benchmark) -> dict[str, Entries]:
    asks, mend = f"{benchmark.name} scores {task} on", "Score the task on it, or leave the task out with tasks=."
    definition = benchmark.tasks[task]
    gone = [name for name in definition.splits if name not in splits]
    if gone:
        raise UnusableScoreError(f"{path}: {asks} {listed(gone)}, the file has {listed(splits)}. {mend}", lacking=True)
    names = set(definition.subsets)
    chosen = {name: [e for e in _listed(path, splits[name]) if _subset(e) in names] for name in definition.splits}
    lacking = sorted({subset for entries in chosen.values() for subset in names - set(map(_subset, entries))})
    if lacking:
        wanted = f"{len(names)} subsets" if len(names) > 1 else f"the subset {next(iter(names))}"
        have = f"{asks} {wanted}, the file has no score of {listed(lacking, 4)}"
        raise UnusableScoreError(f"{path}: {have}. {mend}", lacking=True)
    return chosen


def _pick_split(path: Path, task: str, splits: dict[str, Any], wanted: str) -> str:
    names = ", ".join(splits)
    if wanted and wanted not in splits:
        have = f"{path} has no split {wanted!r}, only {names}"
        raise UnusableScoreError(f"{have}. Change split= or leave it out.", lacking=True)
    definition = definition_of(task)
    known = [wanted] if wanted else [name for name in splits if definition and name in definition.splits]
    known = known or list(splits)
    if "test" not in known and len(known) > 1:
        raise UnusableScoreError(
            f"{path} has the splits {names} and no test. Say which counts with split=<name> or benchmark=<name>."
        )
    return "test" if "test" in known else known[0]


def _listed(path: Path, entries: Any) -> Entries:
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise UnusableScoreError(f"{path} has an empty or odd list of scores. Score the task again.")
    twice = [name for name, count in Counter(map(_subset, entries)).items() if count > 1]
    if twice:
        raise UnusableScoreError(f"{path} scores the subset {twice[0]!r} twice in one split. Score the task again.")
    return entries


def _pick_subsets(path: Path, entries: Entries, wanted: Globs) -> Entries:
    if not wanted:
        return entries
    kept = [e for e in entries if any(fnmatchcase(_subset(e), glob) for glob in wanted)]
    if not kept:
        names = listed(sorted(map(_subset, entries)), 8)
        have = f"{path} has none of subsets={','.join(wanted)}; it has {names}"
        raise UnusableScoreError(f"{have}. Add one of them.", lacking=True)
    return kept


def _subset(entry: dict[str, Any]) -> str:
    return str(entry.get("hf_subset", "default"))


def _main_score(path: Path, entry: dict[str, Any]) -> float:
    value = entry.get("main_score")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise UnusableScoreError(
            f"{path}: main_score of subset {_subset(entry)!r} is {value}, not a number. Score the task again."
        )
    return float(value)
