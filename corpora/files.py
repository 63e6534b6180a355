"""`data=jsonl`: triples from files of the user's own, in the order in which they are named."""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from glob import escape, glob
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from cli.errors import UserError, reading
from corpora.triples import BadRecordError, GradedReader, RecordReader, Triple, TripleMaker

REMEDY = "Name another file in its place."
Rows = Iterator[tuple[int, dict[str, Any]]]
LONGEST_CELL = 2**28  # csv's own limit of 128 KiB is less than a document


def rows(path: Path) -> Rows:
    """Yield (line, record) of a file; of a parquet file (row, record), counted from one.
    Raises `UserError` with file and line for an unknown extension and for what is not of its format."""
    reader = READERS.get(kind(path))
    if reader is None:
        raise UserError(f"{path} is of no known kind. Give .jsonl, .csv or .tsv (each also .gz) or .parquet.")
    with reading(path, REMEDY):
        yield from reader(path)


def kind(path: Path) -> str:
    """Return the extension that names the format: ".jsonl" of "a.jsonl.gz"."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def stem(path: Path) -> str:
    """Return the name without its extensions: "a" of "a.jsonl.gz"."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def text_of(path: Path) -> TextIO:
    """Open a file as text in UTF-8; .gz is unpacked, ends of lines stay as they are."""
    unpacked: Any = gzip.open if path.name.lower().endswith(".gz") else open
    return unpacked(path, "rt", encoding="utf-8-sig", newline="")


def _jsonl(path: Path) -> Rows:
    with text_of(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            try:
                row = json.loads(line)
                if "\\ud" in line or "\\uD" in line:
                    json.dumps(row, ensure_ascii=False).encode()  # refuses half of a pair of surrogates
            except ValueError as error:
                raise UserError(f"{path}, line {number} is not JSON ({error}). Write one object a line.") from error
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {number} is not a JSON object. Write one object a line.")
            yield number, row


def _csv(path: Path, delimiter: str = ",") -> Rows:
    csv.field_size_limit(LONGEST_CELL)
    with text_of(path) as text:
        table = csv.DictReader(text, strict=True, delimiter=delimiter)
        try:
            for row in table:
                place = f"{path}, line {table.line_num}"
                if None in row:
                    raise UserError(f"{place} has more cells than the first line. Quote what holds a {delimiter!r}.")
                yield table.line_num, {column: _cell(value, place) for column, value in row.items()}
        except csv.Error as error:
            mend = 'Write a cell with a quote as "a ""b"" c"'
            raise UserError(f"{path}, after line {table.line_num}: not of its format ({error}). {mend}.") from error


def _cell(value: str | None, place: str) -> Any:
    """A cell as a value: nothing where it is empty, a list where it holds a JSON list of texts."""
    if value and value.startswith(('["', "['")) and value.endswith("]"):
        try:
            return json.loads(value)
        except ValueError as error:
            raise UserError(f'{place} has a list that is not JSON. Write it as JSON: ["a", "b"].') from error
    return value or None


def _parquet(path: Path) -> Rows:
    from pyarrow import parquet

    records = (row for batch in parquet.ParquetFile(path).iter_batches() for row in batch.to_pylist())
    yield from enumerate(records, 1)


READERS: dict[str, Callable[[Path], Rows]] = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
READERS[".tsv"] = partial(_csv, delimiter="\t")


def triples(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """Return the triples of all files of `data.path`. Raises `UserError` with file and line for a bad record."""
    return list(records(data, TripleMaker))


def graded(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """`data=graded`: return the graded pairs of all files of `data.path`; raises as `triples` does."""
    return list(records(data, GradedReader))


def records(data: dict[str, Any], reader: type[RecordReader]) -> Iterator[Any]:
    """Yield what `reader` makes of each record of all files of `data.path`; raises as `triples` does."""
    for path in data_files(data["path"]):
        place = f"{path}, {'row' if kind(path) == '.parquet' else 'line'}"
        found = made(rows(path), reader(data["columns"], stem(path)), place)
        if (first := next(found, None)) is None:
            raise UserError(f"{path} holds no record. Put one record per line, or take it off data.path.")
        yield from chain([first], found)


def made(rows: Rows, make: RecordReader, place: str) -> Iterator[Any]:
    """Yield what `make` makes of numbered records. Raises `UserError` with `place` and number for a bad one."""
    for number, row in rows:
        try:
            yield from make(row)
        except BadRecordError as error:
            raise UserError(f"{place} {number} {error}") from error


def data_files(path: str | list[str] | None) -> list[Path]:
    """Return the files that `path` names: one, several by comma or as a list, or globs. Each occurs once."""
    if not path:
        raise UserError("data.path is empty. Name the files: data.path=a.jsonl.gz,b.csv")
    words = path.split(",") if isinstance(path, str) and not glob(escape(path)) else path  # a name may hold a comma
    words = [words] if isinstance(words, str) else words
    return list(dict.fromkeys(file for word in words if word.strip() for file in _matching(word.strip())))


def _matching(word: str) -> list[Path]:
    path = Path(word).expanduser()
    if path.is_dir():
        raise UserError(f"{word} is a folder. Name its files: data.path='{word.rstrip('/')}/*.jsonl.gz'")
    matches = [path] if path.exists() else sorted(Path(p) for p in glob(str(path), recursive=True))
    if not matches:
        raise UserError(f"There is no data file {word}. Check data.path; relative paths start at {Path.cwd()}.")
    return matches
