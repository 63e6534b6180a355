"""Readers that `data=...` calls: configuration in, triples out; one per source."""

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from cli.errors import UserError
from corpora.docstring_pairs import training_side, training_triples
from corpora.files import files_of
from corpora.triples import Triple, fingerprint
from records.fingerprint import of_files, remembered, stamps

Config = dict[str, Any]


def read_triples(data: Config, cache_dir: str) -> list[Triple]:
    """Return the triples of a `data` configuration by the function that `data.reader` names."""
    return list(_read(json.dumps(data, sort_keys=True), cache_dir, stamped(data)))


def stamped(data: Config) -> str:
    """Return the state of the files of a `data` configuration, another one once they are written; "" without files."""
    try:
        return json.dumps(stamps(files_of(data)))
    except (OSError, UserError):
        return ""  # reading them will say what is wrong


@lru_cache(maxsize=1)  # the cells of a sweep read the same data
def _read(data: str, cache_dir: str, _stamps: str) -> tuple[Triple, ...]:
    config: Config = json.loads(data)
    if "reader" not in config:
        raise UserError(
            f"data={config['name']} holds raw text, and this objective trains on pairs. "
            "Give data=docstrings or data=jsonl."
        )
    module, _, function = config["reader"].rpartition(".")
    reader: Callable[[Config, str], list[Triple]] = getattr(import_module(module), function)
    return tuple(reader(config, cache_dir))


def docstrings(data: Config, cache_dir: str) -> list[Triple]:
    """`data=docstrings`: summary, rest, and the rest of another docstring of the same module."""
    return training_triples(*_packages(data), cache_dir)


def docstring_texts(data: Config, held_out_percent: int, cache_dir: str) -> tuple[list[str], list[str], str]:
    """Return raw texts for pretraining, those held out by hash, and the sha256 of all of them."""
    texts = [d.text for d in training_side(*_packages(data), cache_dir)]
    digest = hashlib.sha256("\x1e".join(texts).encode()).hexdigest()
    unseen = [int(hashlib.sha256(t.encode()).hexdigest(), 16) % 100 < held_out_percent for t in texts]
    kept = [t for t, out in zip(texts, unseen, strict=True) if not out]
    return kept, [t for t, out in zip(texts, unseen, strict=True) if out], digest


def docstring_sources(data: Config, cache_dir: str) -> list[tuple[str, str]]:
    """Return (text, package) of each docstring of the training side."""
    return [(d.text, d.package) for d in training_side(*_packages(data), cache_dir)]


def _packages(data: Config) -> tuple[list[str], list[str]]:
    """Those trained on, and those that no text may be copied from."""
    return data["packages"], [*data["held_out"], *data["development"]]


SOURCES = Path(__file__).resolve().parent


def data_fingerprint(data: Config, cache_dir: str, read: Callable[[Config, str], list[Triple]]) -> str:
    """Return the sha256 of the triples that `read` makes of a `data` configuration, as the manifest has it.

    Of data in files it is remembered as long as files, configuration and the sources of corpora/ stay as they are;
    docstrings and hub data sets are read. Raises `UserError` where the data cannot be read.
    """
    files = files_of(data)
    if not files:
        return fingerprint(read(data, cache_dir))
    what = ["triples", read.__name__, data, of_files(SOURCES.glob("*.py"))]
    return remembered(what, files, lambda: fingerprint(read(data, cache_dir)))
