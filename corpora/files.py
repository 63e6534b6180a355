"""`data=jsonl`: triples from files of the user's own, in the order in which they are named."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from cli.errors import UserError
from corpora.triples import BadRecordError, GradedReader, RecordReader, Triple, TripleMaker
from records.foreign_files import check_file, check_unpacked, damage_named, lines_of, open_bytes

REMEDY = "Name another file in its place."
Row = dict[str, Any]
Rows = Iterator[tuple[int, Row]]
LONGEST_CELL = 2**28  # csv's own limit of 128 KiB is less than a document
ROWS_AT_A_TIME = 256  # of a parquet file, where a value that is stored once may stand in every row


def rows(path: Path) -> Rows:
    """Yield (line, record) of a file; of a parquet file (row, record), counted from one.
    Raises `UserError` with file and line for an unknown extension and for what is not of its format."""
    reader = READERS.get(kind(path))
    if reader is None:
        raise UserError(f"{path} is of no known kind. Give .jsonl or .csv (each also .gz) or .parquet.")
    with damage_named(path):
        yield from reader(path)


def kind(path: Path) -> str:
    """Return the extension that names the format: ".jsonl" of "a.jsonl.gz"."""
    name = path.name.lower()
    bare = name.removesuffix(".gz")
    return Path(bare).suffix if bare == name or not bare.endswith(".parquet") else ".gz"


def stem(path: Path) -> str:
    """Return the name without its extensions: "a" of "a.jsonl.gz"."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def _jsonl(path: Path) -> Rows:
    for number, line in enumerate(lines_of(path, REMEDY), 1):
        if line.isspace():
            continue
        place = f"{path}, line {number}"
        try:
            row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise UserError(f"{place} is not UTF-8 ({error.reason}). Save the file as UTF-8.") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{place} is not JSON ({error}). Write one JSON object a line.") from error
        if not isinstance(row, dict):
            raise UserError(f"{place} is not a JSON object. Write one JSON object a line.")
        yield number, row


def _csv(path: Path) -> Rows:
    csv.field_size_limit(LONGEST_CELL)
    with open_bytes(path, REMEDY) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        table = csv.DictReader(text, strict=True)
        try:
            for row in table:
                place = f"{path}, line {table.line_num}"
                if None in row:
                    raise UserError(f"{place} has more cells than the first line. Quote cells with commas.")
                yield table.line_num, {k: _cell(v, place) for k, v in row.items()}
        except csv.Error as error:
            raise UserError(f"{path}, line {table.reader.line_num} is not CSV ({error}). Mend its quotes.") from error
        except UnicodeDecodeError as error:
            line = table.reader.line_num
            raise UserError(f"{path} is not UTF-8 after line {line} ({error.reason}). Save it as UTF-8.") from error


def _cell(value: str | None, place: str) -> Any:
    """A cell as a value: nothing where it is empty, a list where it holds a JSON list of texts."""
    if value and value[0] == "[" and value[-1] == "]":
        if value.startswith('["'):
            try:
                return json.loads(value)
            except ValueError as error:
                raise UserError(f"{place} has a list that is not JSON ({error}). Mend it.") from error
        if value.startswith("['"):
            raise UserError(f'{place} has a list in Python\'s spelling. Write it as JSON: ["a", "b"].')
    return value or None


def _parquet(path: Path) -> Rows:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(f"{path} needs pyarrow. Install it: pip install pyarrow.") from error
    check_file(path, REMEDY)
    number = size = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=ROWS_AT_A_TIME):
            read = batch.to_pylist()
            size += sum(len(value) for row in read for value in row.values() if isinstance(value, str))
            check_unpacked(path, size)
            for row in read:
                number += 1
                yield number, row
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, after row {number} is not UTF-8 ({error.reason}). Write its texts as UTF-8."
        ) from error
    except pyarrow.ArrowException as error:
        raise UserError(f"{path} is not a whole parquet file ({str(error).splitlines()[0]}). Write it anew.") from error


READERS: dict[str, Callable[[Path], Rows]] = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}


def triples(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """Return the triples of all files of `data.path`.
    Raises `UserError` with file and line for the first record that cannot be used."""
    return list(records(data, TripleMaker))


def graded(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """`data=graded`: return the graded pairs of all files of `data.path`; raises as `triples` does."""
    return list(records(data, GradedReader))


def records(data: dict[str, Any], reader: type[RecordReader]) -> Iterator[Any]:
    """Yield what `reader` makes of each record of all files of `data.path`; raises as `triples` does."""
    for path in data_files(data["path"]):
        yield from file_records(path, reader(data["columns"], stem(path)))


def data_files(path: str | list[str] | None) -> list[Path]:
    """Return the files that `path` names: one, several by comma or as a list, or globs. Each occurs once."""
    if not path:
        raise UserError("data.path is empty. Name the files: data.path=a.jsonl.gz,b.csv")
    words = path
    if isinstance(path, str):
        words = [path] if Path(path).exists() else path.split(",")  # a name may hold a comma
    return list(dict.fromkeys(file for word in words if word.strip() for file in _matching(word.strip())))


def files_of(data: dict[str, Any]) -> list[Path]:
    """Return the files that a `data` configuration and its sources read, those of a folder among them; none where it
    has no path."""
    if "sources" in data:
        return [file for source in data["sources"].values() if source for file in files_of(source)]
    path = data.get("path")
    if not path:
        return []
    if isinstance(path, str) and Path(path).is_dir():
        return sorted(p for p in Path(path).rglob("*") if p.is_file())
    return data_files(path)


def file_records(path: Path, make: RecordReader) -> Iterator[Any]:
    """Yield what `make` reads in each record of one file."""
    unit = "row" if kind(path) == ".parquet" else "line"
    number = 0
    for number, row in rows(path):
        try:
            yield make(row)
        except BadRecordError as error:
            head = " The first line must name the columns." if number == 2 and kind(path) == ".csv" else ""
            raise UserError(f"{path}, {unit} {number} {error}{head}") from error
    if not number:
        raise UserError(f"{path} holds no record. Put one record per line, or take it off data.path.")


def _matching(word: str) -> list[Path]:
    path = Path(word).expanduser()
    if path.is_dir():
        raise UserError(f"{word} is a folder. Name its files: data.path='{word.rstrip('/')}/*.jsonl.gz'")
    if path.exists():
        return [path]
    matches = sorted(Path(p) for p in glob(str(path), recursive=True)) if has_magic(word) else []
    if not matches:
        what = "No file matches" if has_magic(word) else "There is no data file"
        raise UserError(f"{what} {word}. Check data.path; relative paths start at {Path.cwd()}.")
    return matches
