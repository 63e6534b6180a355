"""The sha256 of a configuration's training data, without reading files that are known to be as they were."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpora.files import files_of
from corpora.triples import Triple, fingerprint
from records.fingerprint import of_files
from records.remembered import remembered

Config = dict[str, Any]
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
