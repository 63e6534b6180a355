"""Files of a task folder, read with the file and line in every complaint."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.errors import UserError, reading
from corpora.files import rows

KINDS = {str: "a text", int: "a whole number", float: "a number", list: "a list"}
MOST_LEFT_OUT = 0.01  # share of judgements that a collection may lack: more of them are ids that do not match
Kind = type | tuple[type, ...]
Judgements = dict[str, dict[str, int]]  # query -> document -> grade


def read_rows(path: Path, columns: Mapping[str, Kind], empty: bool = False) -> list[dict[str, Any]]:
    """Read a .jsonl file of objects that have all `columns`. empty: whether a text may be.

    Raises `UserError` naming file, line and column.
    """
    if not path.exists():
        raise UserError(f"There is no {path}. A task folder needs it; docs/own-data.md has the files of each type.")
    read = []
    for number, row in rows(path):
        for column, kind in columns.items():
            if column not in row:
                have = ", ".join(map(str, row)) or "none"
                raise UserError(
                    f"{path}, line {number}: the column '{column}' is missing; the line has: {have}. Add it."
                )
            if fault := _fault(row[column], kind, empty):
                raise UserError(f"{path}, line {number}: the column '{column}' {fault}. Mend the line.")
        read.append(row)
    if not read:
        raise UserError(f"{path} is empty. It needs at least one line.")
    return read


def _fault(value: Any, kind: Kind, empty: bool) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds):
        return f"must be {' or '.join(KINDS[one] for one in kinds)}"
    return "is an empty text" if isinstance(value, str) and not value.strip() and not empty else ""


def read_qrels(path: Path, queries: Mapping[str, str], corpus: Mapping[str, Any]) -> tuple[Judgements, int]:
    """Read `query-id corpus-id score` lines under a header, tab-separated; return grades, and how many were left out.

    Left out are judgements whose query or document is missing or empty, and queries that lost their relevant documents
    so: real collections have some. Raises `UserError` where these are more than `MOST_LEFT_OUT` of all.
    """
    qrels: Judgements = {}
    lost, relevant, total = list[int](), set[str](), 0
    for number, query, document, grade in _judgements(path):
        total += 1
        if query in queries and document in corpus:
            qrels.setdefault(query, {})[document] = grade
        else:
            lost.append(number)
            relevant |= {query} if grade > 0 else set()
    if len(lost) > MOST_LEFT_OUT * total:
        raise UserError(
            f"{path}, line {lost[0]}: its query or document is missing or empty, as in {len(lost)} of {total} lines; "
            f"at most {MOST_LEFT_OUT:.0%} may be left out. Mend the files."
        )
    kept = {query: grades for query, grades in qrels.items() if query not in relevant or max(grades.values()) > 0}
    if not any(grade > 0 for grades in kept.values() for grade in grades.values()):
        raise UserError(f"{path} names no relevant document. It needs at least one line with a score above 0.")
    return kept, len(lost)


def _judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Yield line, query, document and grade of each line below the header."""
    need = "query-id, corpus-id and a whole score, tab-separated"
    with reading(path, f"A Retrieval folder needs it: {need}."), path.open(encoding="utf-8", newline="") as lines:
        for number, cells in enumerate(csv.reader(lines, delimiter="\t"), start=1):
            if number == 1 and cells[-1:] == ["score"]:
                continue
            try:
                query, document, grade = cells[0], cells[1], int(cells[2])
            except (IndexError, ValueError) as error:
                raise UserError(f"{path}, line {number}: needs {need}. Mend the line.") from error
            yield number, query, document, grade
