"""One mteb TaskResult file -> one score: the plain mean of `main_score` over the subsets of one split."""

import math
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from analysis.reading.json_file import load_object
from analysis.reading.rows import Row
from records.errors import UserError


def read_task(path: Path, model: str, seed: str, split: str = "", subsets: tuple[str, ...] = ()) -> Row:
    """Return the row of one task file.

    The mean over subsets is mteb's own rule (`TaskResult.get_score`); `split` and `subsets` narrow it down.
    Raises UserError where the file has no such scores, or a score that is no finite number.
    """
    result = load_object(path)
    splits = result.get("scores")
    if not isinstance(splits, dict) or not splits:
        raise UserError(f'{path} is no mteb result: it has no "scores". Remove the file, or score the task again.')
    name = _pick_split(path, splits, split)
    entries = _pick_subsets(path, splits[name], subsets)
    values = [_main_score(path, entry) for entry in entries]
    labels = ",".join(sorted(str(entry.get("hf_subset", "default")) for entry in entries))
    return Row(
        model=model,
        seed=seed,
        task=str(result.get("task_name") or path.stem),
        score=math.fsum(values) / len(values),
        source=str(path),
        scored_on=f"{name}: {labels}",
        dataset=str(result.get("dataset_revision") or ""),
    )


def _pick_split(path: Path, splits: dict[str, Any], wanted: str) -> str:
    names = ", ".join(splits)
    if wanted:
        if wanted in splits:
            return wanted
        raise UserError(f"{path} has no split {wanted!r}, only {names}. Change split= or leave it out.")
    if "test" in splits:
        return "test"
    if len(splits) > 1:
        raise UserError(f"{path} has the splits {names} and no test. Say which counts with split=<name>.")
    return next(iter(splits))


def _pick_subsets(path: Path, entries: Any, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path} has an empty or odd list of scores. Score the task again.")
    if not wanted:
        return entries
    kept = [e for e in entries if any(fnmatchcase(str(e.get("hf_subset", "default")), glob) for glob in wanted)]
    if not kept:
        names = ", ".join(sorted(str(e.get("hf_subset", "default")) for e in entries)[:8])
        raise UserError(f"{path} has none of subsets={','.join(wanted)}; it has {names}. Add one of them.")
    return kept


def _main_score(path: Path, entry: dict[str, Any]) -> float:
    value = entry.get("main_score")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        subset = entry.get("hf_subset", "default")
        raise UserError(f"{path}: main_score of subset {subset!r} is {value}, not a number. Score the task again.")
    return float(value)
