"""The items of each task (queries, pairs, texts), from the item files that evaluate.py writes to predictions/."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.names import by_number
from analysis.statistics.arrays import Floats
from cli.errors import UserError
from records.foreign_files import read_object

KINDS = ("mean", "spearman", "average_precision")


@dataclass
class Items:
    """The items of one task (and subset). `values`: (design, seed) -> [n] scores or predictions, in order of `ids`.

    `features`: name -> [n], nan where an item has none; empty in files that older versions wrote.
    """

    task: str
    type: str
    subset: str  # "" where the task has one
    statistic: str
    kind: str
    ids: list[str]
    truth: Floats  # [n]; empty for kind "mean"
    source: Path
    features: dict[str, Floats] = field(default_factory=dict)
    values: dict[tuple[str, str], Floats] = field(default_factory=dict)

    def seeds_of(self, designs: Sequence[str]) -> list[str]:
        """Return the seeds for which each of the designs has these items."""
        return by_number(set.intersection(*({seed for other, seed in self.values if other == d} for d in designs)))

    def table(self, designs: Sequence[str], seeds: Sequence[str]) -> Floats:
        """Return the values [designs, seeds, n]."""
        return np.array([[self.values[design, seed] for seed in seeds] for design in designs])


def read_items(frame: pd.DataFrame, folder: str = "") -> list[Items]:
    """Return the items of every task of `frame` (columns of `scores.COLUMNS`) that has a file of them.

    The scores <results>/results/<model>/<revision>/<task>.json have theirs in
    <results>/predictions/<model>/<revision>/<task>_items.json, or below `folder` instead of predictions. Items are
    those of the splits and subsets of which the score is.
    Raises UserError for a broken file, and where two designs' items of a task differ.
    """
    tasks: dict[tuple[str, str], Items] = {}
    of_files = frame["source"].str.endswith(".json").to_numpy(dtype=bool)  # a csv of a million scores has no items
    for row in frame[of_files].itertuples():
        path = item_file(Path(row.source), folder)
        if path is None or not path.is_file():
            continue
        about = read_object(path, "Remove the file, or score the task again.")
        for name, entry in _entries(about, row.split.split(";"), row.subsets.split(";"), path).items():
            of_file = _items(entry, row.task, row.type, name, path)
            items = tasks.setdefault((row.task, name), of_file)
            _same(items, of_file, path)
            items.features = items.features or of_file.features
            key = "values" if items.kind == "mean" else "predicted"
            items.values[row.design, row.seed] = _numbers(entry, key, path)
    return list(tasks.values())


def item_file(scores: Path, folder: str = "") -> Path | None:
    """Return where the items of a score file lie, whether they are there or not; None for a score of a csv."""
    if scores.suffix != ".json" or len(scores.parents) < 4:
        return None
    root = Path(folder) if folder else scores.parents[3] / "predictions"
    return root / scores.parents[1].name / scores.parents[0].name / f"{scores.stem}_items.json"


def _entries(about: dict[str, Any], splits: list[str], subsets: list[str], path: Path) -> dict[str, dict[str, Any]]:
    """Return name -> entry of the splits and subsets; the name is "" where the splits hold one entry alone."""
    every = about.get("splits")
    if not isinstance(every, dict) or not every:
        raise _broken(path)
    entries = {(split, subset): entry for split in splits for subset, entry in every.get(split, {}).items()}
    several = "{1} of {0}" if len(splits) > 1 else "{1}"
    name = several if len(entries) > 1 else ""
    return {name.format(*place): entry for place, entry in entries.items() if place[1] in subsets}


def _items(entry: dict[str, Any], task: str, kind: str, subset: str, path: Path) -> Items:
    ids = entry.get("ids")
    if entry.get("kind") not in KINDS or not isinstance(ids, list):
        raise _broken(path)
    truth = np.zeros(0) if entry["kind"] == "mean" else _numbers(entry, "truth", path)
    of_texts = entry.get("features", {})
    if not isinstance(of_texts, dict):
        raise _broken(path)
    features = {name: _numbers({**of_texts, "ids": ids}, name, path, gaps=True) for name in of_texts}
    names = str(entry.get("statistic")), entry["kind"], list(map(str, ids))
    return Items(task, kind, subset, *names, truth, path, features)


def _numbers(entry: dict[str, Any], key: str, path: Path, gaps: bool = False) -> Floats:
    """Return the numbers of a key, one per item. gaps: null is nan."""
    try:
        values = np.array(entry[key], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(path) from error
    if values.shape != (len(entry["ids"]),) or not np.isfinite(values[~np.isnan(values)] if gaps else values).all():
        raise _broken(path)
    return values


def _same(one: Items, other: Items, path: Path) -> None:
    alike = one.ids == other.ids and one.statistic == other.statistic and np.array_equal(one.truth, other.truth)
    if alike and one.features and other.features:  # files of older versions have none
        alike = pd.DataFrame(one.features).equals(pd.DataFrame(other.features))
    if not alike:
        raise UserError(
            f"The items of {one.task} differ between {one.source} and {path}, so they cannot be paired."
            " Score both on the same data, or leave the items out with items=none."
        )


def _broken(path: Path) -> UserError:
    return UserError(
        f"{path} is no item file of evaluate.py. Score the task again, or leave the items out: items=none."
    )
