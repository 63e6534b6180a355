"""A table without a format: cells with their emphasis, which Markdown and LaTeX each print in their way."""

from collections import Counter
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Cell:
    """`style`: "best", "second" or ""; `mark`: stars after the text; `notes`: the letters of its footnotes;
    `below`: lines below, such as the p-value."""

    text: str
    style: str = ""
    mark: str = ""
    notes: str = ""
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grid:
    """`name` labels the table; `left` columns hold text, the others numbers; `rest` says what is not shown.

    `footnotes` are part of the table itself: `a: threads: 2 in eos-causal, 4 in the others (allowed)`.
    `title` is the heading above it.
    """

    name: str
    caption: str
    header: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    left: int = 1
    rest: str = ""
    footnotes: tuple[str, ...] = ()
    title: str = ""


NONE = "n.a."


def said_once(grid: Grid) -> Grid:
    """Return the grid with what every row of a column says to be n.a. in the caption; a column of nothing else goes.

    Where most rows give one reason and the others another one, those keep theirs.
    """
    if len(grid.rows) < 2:
        return grid
    remarks, rows, empty = [], [list(row) for row in grid.rows], []
    for k in range(grid.left, len(grid.header)):
        cells = [row[k] for row in rows]
        lines = _common_reasons(cells)
        marked = all(cell.mark.endswith(NONE) for cell in cells)
        if {cell.text for cell in cells} == {NONE}:
            empty.append(k)
        for row in rows:
            mark = row[k].mark.removesuffix(NONE).rstrip() if marked else row[k].mark
            row[k] = replace(row[k], mark=mark, below=tuple(line for line in row[k].below if line not in lines))
        reasons = [line.removeprefix(NONE).lstrip(": ") for line in lines]
        if lines or marked or k in empty:
            odd = any(line.startswith(NONE) for row in rows for line in row[k].below)
            named = bool(reasons) and reasons[0].startswith(f"{grid.header[k]} ")  # p of the column p
            words = ["" if named else grid.header[k], *reasons, "(but where a row gives another)" if odd else ""]
            remarks.append(" ".join(filter(None, words)))
    kept = [k for k in range(len(grid.header)) if k not in empty]
    caption = f"{grid.caption} {NONE} in every row: {'; '.join(remarks)}." if remarks else grid.caption
    rows = [[row[k] for k in kept] for row in rows]
    return replace(grid, caption=caption, header=[grid.header[k] for k in kept], rows=rows)


def _common_reasons(cells: list[Cell]) -> list[str]:
    """Return the lines on n.a. that every cell has; else the one that most have, where all others have another."""
    reasons = [[line for line in cell.below if line.startswith(NONE)] for cell in cells]
    shared = [line for line in reasons[0] if all(line in of_cell for of_cell in reasons)]
    if shared or not all(reasons):
        return shared
    counts = Counter(line for of_cell in reasons for line in of_cell)
    line, count = counts.most_common(1)[0]
    return [line] if count > len(cells) / 2 else []
