"""The reader that a `data` configuration names: configuration in, triples out."""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from cli.errors import UserError
from corpora.triples import Triple

Config = dict[str, Any]
Reader = Callable[[Config, str], Iterable[Triple]]


def read_triples(data: Config, cache_dir: str) -> list[Triple]:
    """Return the triples of a `data` configuration by the function that `data.reader` names."""
    if "reader" not in data:
        raise UserError(
            f"data={data['name']} holds raw text, and this objective trains on pairs. "
            "Give data=docstrings or data=jsonl."
        )
    return read_once(function_of(data["reader"]), data, cache_dir)


def function_of(name: str) -> Callable:
    """Return the function that "package.module.function" names."""
    return resolve_name(":".join(name.rsplit(".", 1)))  # without the colon it hides what a module fails to import


def read_once(read: Reader, data: Config, cache_dir: str) -> list[Triple]:
    """Return what `read` makes of a `data` configuration; the last two are kept, but for files, which may change."""
    if data.get("path") or "sources" in data:
        return list(read(data, cache_dir))
    return list(_kept(read, json.dumps(data, sort_keys=True), cache_dir))


@lru_cache(maxsize=2)  # the cells of a sweep read the same data, its stages the same text
def _kept(read: Reader, data: str, cache_dir: str) -> tuple[Triple, ...]:
    return tuple(read(json.loads(data), cache_dir))
