"""Result -> result.json: everything in it, with every digit.

A table is {"columns": [...], "data": [[...], ...]}, so pandas.DataFrame(**table) reads it back. JSON has no NaN and no
infinity: both are null, and a table that held infinities lists them as [row, column, "inf" | "-inf"] under "infinite",
so that nothing is lost. A table of more than `MOST_ROWS` rows stays in its csv, which has every digit too:
{"file": name, "columns": [...], "rows": n}.

Designs have their own names and scores are 0-1, whatever `rename=` and `unit=` say, so that no program that reads it
changes with the words of a paper; verdict, notes and captions are the printed ones.
"""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import pandas as pd

from analysis.analyse import Result
from analysis.manifests.cost import costs
from analysis.manifests.designs import Design
from analysis.scores.long_table import scores_for_file
from analysis.settings import PLACES, Settings, public_path

RESULT_VERSION = 2  # grows when a key changes its meaning or goes
MOST_ROWS = 20_000
PACKAGES = ("numpy", "pandas", "scipy", "matplotlib")  # what every analysis computes with; the last draws
NULLS = 'null = no number. Infinite values are null too and stand in the table\'s "infinite" as [row, column, sign].'


def result_json(result: Result, files: Sequence[str] = ()) -> str:
    """Return the text of result.json. The same result gives the same text: there is no date in it.

    files: names of all that is written with it, which the next analysis in that folder takes away or replaces.
    """
    material = result.material
    own_names, plain = material.own_names, material.of_own_names
    control = own_names.get(material.control, "")
    tables = {
        "scores": scores_for_file(material.whole_frame, material.settings.scores),
        "by_type": material.means.rename_axis("design").reset_index(),
        "pairs": material.pairs,
    }
    tables |= {name: frame for answer in result.answers if answer.main for name, frame in answer.frames.items()}
    further = [a for a in result.answers if not a.main and (a.grids or a.frames or a.notes)]
    value = {
        "result_version": RESULT_VERSION,
        "nulls": NULLS,
        "versions": versions(material.settings.figures),
        "files": list(files),
        "verdict": result.verdict,
        "settings": _settings(material.settings, control),
        "against": control or None,
        "designs": {own_names[label]: _design(design) for label, design in material.designs.items()},
        "types": material.types,
        "tables": _tables(tables, plain),
        **{key: _plain(fact) for answer in result.answers for key, fact in answer.facts.items()},
        "footnotes": [{"mark": n.mark, "text": n.text, "keys": list(n.keys)} for n in material.footnotes],
        "sections": [{"name": a.name, "tables": _tables(a.frames, plain), "notes": list(a.notes)} for a in further],
        "captions": {
            grid.name: {"caption": grid.caption, "footnotes": list(grid.footnotes), "rest": grid.rest}
            for grid in result.grids()
        },
        "notes": list(result.notes),
    }
    return _nested(value, 0) + "\n"


def _settings(settings: Settings, control: str) -> dict[str, Any]:
    """The settings with public paths: two clones in different folders print the same."""
    words = {key: public_path(Path(getattr(settings, key))) for key in PLACES if getattr(settings, key)}
    return {key: _plain(item) for key, item in (vars(settings) | words | {"against": control}).items()}


def versions(drawn: bool) -> dict[str, str]:
    """Return the versions of Python and of the packages that ran; `drawn`: whether there are figures."""
    numbers = {"python": python_version()}
    for package in PACKAGES if drawn else PACKAGES[:-1]:
        with suppress(PackageNotFoundError):
            numbers[package] = version(package)
    return numbers


def table(frame: pd.DataFrame, name: str = "") -> dict[str, Any]:
    """Return one table as JSON can hold it; see the head of this file."""
    columns = [str(column) for column in frame.columns]
    if len(frame) > MOST_ROWS:
        return {"file": f"{name}.csv", "columns": columns, "rows": len(frame)}
    infinite: list[list[Any]] = []
    data = [
        [_cell(value, (row, columns[k]), infinite) for k, value in enumerate(values)]
        for row, values in enumerate(zip(*(frame.iloc[:, k].tolist() for k in range(len(columns))), strict=True))
    ]
    return {"columns": columns, "data": data} | ({"infinite": infinite} if infinite else {})


def _cell(value: Any, place: tuple[int, str], infinite: list[list[Any]]) -> Any:
    if isinstance(value, float) and math.isinf(value):
        infinite.append([*place, "inf" if value > 0 else "-inf"])
    return _plain(value)


def _design(design: Design) -> dict[str, Any]:
    parameters, operations, speed, memory = costs(design)
    return {
        "model": design.model,
        "study": design.study or None,
        "pooler": design.pooler or None,
        "attn": design.attn or None,
        "factors": design.factors,
        "trained": design.trained,
        "seeds": [run.seed for run in design.runs],
        "manifests_sha256": [run.manifest.get("manifest_sha256") for run in design.runs],
        "trainable_parameters": parameters,
        "train_flops": operations,
        "train_tokens_per_second": speed,
        "peak_memory_bytes": memory,
    }


def _tables(frames: dict[str, pd.DataFrame], plain: Callable[[pd.DataFrame], pd.DataFrame]) -> dict[str, Any]:
    return {name: table(plain(frame), name) for name, frame in frames.items()}


def _plain(value: Any) -> Any:
    """Settings and the like as JSON has them; what it does not know, such as a path, as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return public_path(value)
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def _nested(value: Any, depth: int) -> str:
    """One line per key on top and one per row of a table: readable, and a difference of two results is by row."""
    flat = not isinstance(value, (dict, list)) or not value
    row = isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value)
    if flat or row:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    gap, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict):
        parts = [f"{json.dumps(str(k), ensure_ascii=False)}: {_nested(v, depth + 1)}" for k, v in value.items()]
        return "{" + gap + ("," + gap).join(parts) + end + "}"
    return "[" + gap + ("," + gap).join(_nested(item, depth + 1) for item in value) + end + "]"
