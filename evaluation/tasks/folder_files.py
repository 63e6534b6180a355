"""Files of a task folder, read with the file and line in every complaint."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.errors import UserError, reading
from corpora.files import rows

LARGEST = 10**300  # of a number: an int of more digits is no float
Check = Callable[[Any], str]  # returns what is wrong with a value, or ""
WHOLE = re.compile(r" *-?[0-9]{1,9} *")  # a grade
MOST_LEFT_OUT = 0.01  # share of judgements, documents or queries that a collection may lack


def read_rows(path: Path, columns: Mapping[str, Check]) -> list[dict[str, Any]]:
    """Read a .jsonl file of objects that have all `columns`. Raises `UserError` naming file, line and column."""
    if not path.exists():
        raise UserError(f"There is no {path}. A task folder needs it; docs/own-data.md has the files of each type.")
    numbered = list(rows(path))
    for number, row in numbered:
        for column, check in columns.items():
            if column not in row:
                have = ", ".join(map(str, row)) or "none"
                raise UserError(
                    f"{path}, line {number}: the column '{column}' is missing; the line has: {have}. Add it."
                )
            if wrong := check(row[column]):
                raise UserError(f"{path}, line {number}: the column '{column}' {wrong}. Mend the line.")
    if not numbered:
        raise UserError(f"{path} is empty. It needs at least one line.")
    return [row for _, row in numbered]


def read_qrels(
    path: Path, queries: Mapping[str, str], corpus: Mapping[str, Any]
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Read `query-id corpus-id score` lines under a header, tab-separated; return the grades by query, and what was
    left out: lines whose query or document is missing or empty, and queries that lost their relevant documents so.
    Raises `UserError` naming file and line, also where more than `MOST_LEFT_OUT` of the lines would be left out."""
    qrels: dict[str, dict[str, int]] = {}
    lost: list[str] = []  # the lines, and what is missing there
    relevant: set[str] = set()
    total = 0
    for number, query, document, score in _judgements(path):
        total += 1
        if query not in queries or document not in corpus:
            absent = f"the document '{document}'" if query in queries else f"the query '{query}'"
            lost.append(f"{path}, line {number}: {absent}")
            relevant |= {query} & set(queries) if score > 0 else set()
        elif qrels.setdefault(query, {}).setdefault(document, score) != score:
            raise UserError(f"{path}, line {number}: query '{query}' and document '{document}' have another score.")
    refuse_many(lost, total, "lines")
    whole = {query: grades for query, grades in qrels.items() if query not in relevant or max(grades.values()) > 0}
    if not any(score > 0 for grades in whole.values() for score in grades.values()):
        raise UserError(f"{path} names no relevant document. It needs at least one line with a score above 0.")
    return whole, {"judgements": len(lost), "judged queries": len(relevant - set(whole))}


def refuse_many(lost: Sequence[str], total: int, what: str) -> None:
    """Raise `UserError` where more than `MOST_LEFT_OUT` of `total` are lost. lost: what is missing or empty, where."""
    if len(lost) > MOST_LEFT_OUT * total:
        raise UserError(
            f"{lost[0]} is missing or empty, as in {len(lost)} of {total} {what}; at most {MOST_LEFT_OUT:.0%} may be"
            " left out. Mend the files."
        )


def _judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Yield line, query, document and grade of each line below the header."""
    need = "query-id, corpus-id and a whole score, tab-separated"
    with reading(path, f"A Retrieval folder needs it: {need}."), path.open(encoding="utf-8", newline="") as lines:
        for number, cells in enumerate(csv.reader(lines, delimiter="\t"), start=1):
            if number == 1 and cells[-1:] == ["score"]:
                continue
            if len(cells) != 3 or not WHOLE.fullmatch(cells[2]):
                raise UserError(f"{path}, line {number}: needs {need}. Mend the line.")
            yield number, cells[0], cells[1], int(cells[2])


def string(value: Any) -> str:
    """Check: a text, or an empty one."""
    if not isinstance(value, str):
        return f"must be a text, not {type(value).__name__}"
    return "" if is_whole(value) else "has half a character (a lone surrogate)"


def is_whole(value: str) -> bool:
    """Return whether a text can be written as UTF-8: JSON can hold half a character, which nothing can read."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def text(value: Any) -> str:
    """Check: a text with something in it."""
    return string(value) or ("" if value.strip() else "is an empty text")


def texts(value: Any) -> str:
    """Check: a list of texts with at least one member."""
    if not isinstance(value, list) or not value:
        return "must be a list with at least one text"
    return next((f"has a member that {wrong}" for wrong in map(text, value) if wrong), "")


def number(value: Any) -> str:
    """Check: a finite number."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST
    return "" if good else "must be a number"


def numbers(value: Any) -> str:
    """Check: a list of numbers with at least one member."""
    return "" if isinstance(value, list) and value and not any(map(number, value)) else "must be a list of numbers"


def label(value: Any) -> str:
    """Check: a class, as text or whole number."""
    if isinstance(value, str):
        return string(value) or ("" if value else "is an empty text")
    return "" if type(value) is int else "must be a text or a whole number"


def binary(value: Any) -> str:
    """Check: 0 or 1."""
    return "" if value in (0, 1) else "must be 0 or 1"
