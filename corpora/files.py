"""`data=jsonl`: triples from files of the user's own, in the order in which they are named."""

from collections.abc import Iterator
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from corpora.rows import kind, rows, stem
from corpora.triple_maker import BadRecordError, TripleMaker
from corpora.triples import Triple
from records.errors import UserError


def triples(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """Return the triples of all files of `data.path`.

    Raises `UserError` with file and line for the first record that cannot be used.
    """
    found: list[Triple] = []
    for path in data_files(data["path"]):
        found.extend(file_triples(path, data["columns"]))
    return found


def data_files(path: str | list[str] | None) -> list[Path]:
    """Return the files that `path` names: one, several by comma or as a list, or globs. Each occurs once."""
    if not path:
        raise UserError("data.path is empty. Name the files: data.path=a.jsonl.gz,b.csv")
    whole = isinstance(path, str) and Path(path).exists()  # a name may hold a comma
    words = [str(path)] if whole else path.split(",") if isinstance(path, str) else path
    named = [p for word in words if word.strip() for p in _matching(word.strip())]
    return list(dict.fromkeys(named))


def files_of(data: dict[str, Any]) -> list[Path]:
    """Return the files that a `data` configuration reads, those of a folder among them; none where it has no path."""
    path = data.get("path")
    if not path:
        return []
    if isinstance(path, str) and Path(path).is_dir():
        return sorted(p for p in Path(path).rglob("*") if p.is_file())
    return data_files(path)


def file_triples(path: Path, columns: dict[str, str]) -> Iterator[Triple]:
    """Yield the triples of one file; `columns` maps our names to the file's."""
    make = TripleMaker(columns, stem(path))
    unit = "row" if kind(path) == ".parquet" else "line"
    number = 0
    for number, row in rows(path):
        try:
            yield make(row)
        except BadRecordError as error:
            head = " The first line must name the columns." if number == 2 and kind(path) == ".csv" else ""
            raise UserError(f"{path}, {unit} {number} {error}{head}") from error
    if not number:
        raise UserError(f"{path} holds no record. Put one record a line, or take it off data.path.")


def _matching(word: str) -> list[Path]:
    path = Path(word).expanduser()
    if path.is_dir():
        raise UserError(f"{word} is a folder. Name its files: data.path='{word.rstrip('/')}/*.jsonl.gz'")
    if not path.exists() and has_magic(word):
        matches = sorted(Path(p) for p in glob(str(path), recursive=True))
        if not matches:
            raise UserError(f"No file matches {word}. Check data.path; relative paths start at {Path.cwd()}.")
        return matches
    if not path.exists():
        raise UserError(f"There is no data file {word}. Check data.path; relative paths start at {Path.cwd()}.")
    return [path]
