"""Readers that `data=...` calls: configuration in, triples out; one per source."""

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from cli.errors import UserError
from corpora.docstring_pairs import training_graded, training_side, training_triples
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


def docstrings(data: Config, cache_dir: str) -> list[Triple]:
    """`data=docstrings`: summary, rest, and the rest of another docstring of the same module."""
    return training_triples(*packages_of(data), cache_dir)


def docstring_graded(data: Config, cache_dir: str) -> list[Triple]:
    """`data=docstring_graded`: a summary and a body, graded by how near their docstrings stand."""
    return training_graded(*packages_of(data), cache_dir)


def docstring_texts(data: Config, held_out_percent: int, cache_dir: str) -> tuple[list[str], list[str], str]:
    """Return raw texts for pretraining, those held out by hash, and the sha256 of all of them."""
    texts = [text for text, _ in docstring_sources(data, cache_dir)]
    digest = hashlib.sha256("\x1e".join(texts).encode()).hexdigest()
    parts: tuple[list[str], list[str]] = [], []
    for text in texts:
        parts[of_percent(text, held_out_percent)].append(text)
    return *parts, digest


def of_percent(text: str, percent: int) -> bool:
    """Tell whether a text is of those that are held out: `percent` of all, by the text's own sha256."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100 < percent


def docstring_sources(data: Config, cache_dir: str) -> list[tuple[str, str]]:
    """Return (text, package) of each docstring of the training side."""
    return [(d.text, d.package) for d in training_side(*packages_of(data), cache_dir)]


def packages_of(data: Config) -> tuple[list[str], list[str]]:
    """Return those trained on, and those that no text may be copied from."""
    return data["packages"], [*data["held_out"], *data["development"]]
