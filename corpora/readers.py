"""The reader that a `data` configuration names: configuration in, triples out."""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from cli.errors import UserError
from corpora.files import files_of
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
    """Return what `read` makes of a `data` configuration; the last two are kept while their files stay as they are."""
    stats = [(str(path), path.stat()) for path in files_of(data) if path.exists()]
    state = json.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return list(_kept(read, json.dumps(data, sort_keys=True), cache_dir, state))


@lru_cache(maxsize=2)  # the cells of a sweep read the same data, its stages the same text
def _kept(read: Reader, data: str, cache_dir: str, _state: str) -> tuple[Triple, ...]:
    return tuple(read(json.loads(data), cache_dir))
