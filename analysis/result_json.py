"""Result -> result.json: what was compared, how and with which finding; the csv files beside it hold the tables.

null = unknown.
"""

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

from analysis.analyse import Result
from analysis.manifests.designs import Design
from analysis.settings import public_path
from analysis.tables.costs import costs

PACKAGES = ("numpy", "pandas", "scipy", "scikit-posthocs", "matplotlib")


def result_json(result: Result, files: Sequence[str] = ()) -> str:
    """Return the text of result.json. The same result gives the same text: there is no date in it.

    files: names of all that is written with it, which the next analysis in that folder takes away or replaces.
    """
    compared = result.compared
    value = {
        "versions": versions(),
        "files": list(files),
        "verdict": result.verdict,
        "settings": vars(compared.settings),
        "against": compared.control or None,
        "designs": {label: _design(design) for label, design in compared.designs.items()},
        "types": compared.types,
        "footnotes": [{"mark": n.mark, "text": n.text, "keys": list(n.keys)} for n in compared.footnotes],
        "notes": [*result.notes, *(note for section in result.sections for note in section.notes)],
    }
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that the analysis computes and draws with."""
    numbers = {"python": python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            numbers[package] = version(package)
    return numbers


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


def _plain(value: Any) -> Any:
    """Return settings and the like as JSON has them; what it does not know, such as a path, as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return public_path(value)
    value = value.item() if hasattr(value, "item") else value  # a number of numpy's
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)
