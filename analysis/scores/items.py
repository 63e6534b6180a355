"""The items of each task (queries, pairs, texts), from the item files that evaluate.py writes to predictions/."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.names import by_number
from analysis.statistics.arrays import Floats
from cli.errors import UserError, reading
from records.files import read_object

KINDS = ("mean", "spearman")
REMEDY = "Score the task again, or leave tables=[items] out."


@dataclass
class Items:
    """The items of one task (and subset). `values`: (design, seed) -> [n] scores or predictions, in order of `ids`."""

    task: str
    type: str
    subset: str  # "" where the task has one
    statistic: str
    kind: str
    ids: list[str]
    truth: Floats  # [n]; empty for kind "mean"
    source: Path
    values: dict[tuple[str, str], Floats] = field(default_factory=dict)

    def seeds_of(self, designs: Sequence[str]) -> list[str]:
        """Return the seeds for which each design has these items."""
        return by_number(set.intersection(*({seed for other, seed in self.values if other == d} for d in designs)))

    def table(self, designs: Sequence[str], seeds: Sequence[str]) -> Floats:
        """Return the values [designs, seeds, n]."""
        return np.array([[self.values[design, seed] for seed in seeds] for design in designs])


def read_items(frame: pd.DataFrame, folder: Path | None = None) -> list[Items]:
    """Return the items of every task of the long table that has a file of them.

    The scores <results>/results/<model>/<revision>/<task>.json have theirs in
    <results>/predictions/<model>/<revision>/<task>_items.json, or below `folder` instead of predictions. Items are
    those of the splits and subsets of which the score is.
    Raises UserError for a broken file, and where two designs' items of a task differ.
    """
    tasks: dict[tuple[str, str], Items] = {}
    for row in frame[frame["source"].str.endswith(".json")].itertuples():
        path = item_file(Path(row.source), folder)
        if path is None or not path.is_file():
            continue
        with reading(path, REMEDY):
            entries = _entries(read_object(path)["splits"], row.split.split(";"), row.subsets.split(";"))
            found = {name: _items(entry, row.task, row.type, name, path) for name, entry in entries.items()}
            values = {name: _numbers(entry, "values", "predicted") for name, entry in entries.items()}
        for name, of_file in found.items():
            items = tasks.setdefault((row.task, name), of_file)
            _check_same(items, of_file)
            items.values[row.design, row.seed] = values[name]
    return list(tasks.values())


def item_file(scores: Path, folder: Path | None = None) -> Path | None:
    """Return where the items of a score file lie, whether they are there or not; None for a score of a csv."""
    if scores.suffix != ".json" or len(scores.parents) < 4:
        return None
    root = folder or scores.parents[3] / "predictions"
    return root / scores.parents[1].name / scores.parents[0].name / f"{scores.stem}_items.json"


def _entries(every: dict[str, Any], splits: list[str], subsets: list[str]) -> dict[str, dict[str, Any]]:
    """Return name -> entry of the splits and subsets; the name is "" where the splits hold one entry alone."""
    entries = {(split, subset): entry for split in splits for subset, entry in every.get(split, {}).items()}
    several = "{1} of {0}" if len(splits) > 1 else "{1}"
    name = several if len(entries) > 1 else ""
    return {name.format(*place): entry for place, entry in entries.items() if place[1] in subsets}


def _items(entry: dict[str, Any], task: str, kind: str, subset: str, path: Path) -> Items:
    if entry["kind"] not in KINDS:
        raise ValueError(f"there is no kind {entry['kind']!r}")
    truth = np.zeros(0) if entry["kind"] == "mean" else _numbers(entry, "truth")
    names = str(entry["statistic"]), entry["kind"], list(map(str, entry["ids"]))
    return Items(task, kind, subset, *names, truth, path)


def _numbers(entry: dict[str, Any], *keys: str) -> Floats:
    """Return the finite numbers of the first of the keys that is there, one per item."""
    values = np.array(next(entry[key] for key in keys if key in entry), dtype=np.float64)
    if values.shape != (len(entry["ids"]),) or not np.isfinite(values).all():
        raise ValueError(f"{keys[0]} is not a finite number per item")
    return values


def _check_same(one: Items, other: Items) -> None:
    if one.ids != other.ids or one.statistic != other.statistic or not np.array_equal(one.truth, other.truth):
        raise UserError(
            f"The items of {one.task} differ between {one.source} and {other.source}, so they cannot be paired."
            " Score both on the same data, or leave tables=[items] out."
        )
