"""Grid -> what the page's template prints, each cell with the value by which a click sorts."""

import re
from dataclasses import dataclass

from analysis.grids.grid import Cell, Grid

NUMBER = re.compile(r"([<>]=?\s*)?([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(K|M|B|%)?$", re.IGNORECASE)
NO_BREAK, LONGEST = "\u00a0", 40
SIZES = {"k": 1e3, "m": 1e6, "b": 1e9}


@dataclass(frozen=True)
class HtmlCell:
    """A cell, `value`: its number as JavaScript reads it, its text in a column of text, or "" for none; `again`: the
    name of the row above, which the other formats leave out, and which a sorted table needs."""

    text: str
    style: str
    mark: str
    notes: str
    below: tuple[str, ...]
    value: str
    again: bool = False


@dataclass(frozen=True)
class HtmlGrid:
    """A grid with a title that is never empty; `narrow`: its names are short enough to stay on one line."""

    name: str
    title: str
    caption: str
    header: list[str]
    rows: list[list[HtmlCell]]
    left: int
    rest: str
    footnotes: tuple[str, ...]
    narrow: bool


def html_grid(grid: Grid) -> HtmlGrid:
    """Return the grid with sortable values; an empty cell before the last column of text repeats the one above."""
    rows: list[list[HtmlCell]] = []
    for row in grid.rows:
        above = rows[-1] if rows else []
        rows.append([_cell(cell, k, grid, above) for k, cell in enumerate(row)])
    title = grid.title or grid.name.capitalize()
    header = [re.sub(r"\([^)]*\)", lambda m: m[0].replace(" ", NO_BREAK), name) for name in grid.header]
    narrow = all(len(row[0].text) <= LONGEST for row in rows)
    return HtmlGrid(grid.name, title, grid.caption, header, rows, grid.left, grid.rest, grid.footnotes, narrow)


def _cell(cell: Cell, column: int, grid: Grid, above: list[HtmlCell]) -> HtmlCell:
    again = column < grid.left - 1 and not cell.text and bool(above)
    text = above[column].text if again else cell.text
    value = text if column < grid.left else number(text)
    return HtmlCell(text, cell.style, cell.mark, cell.notes, cell.below, value, again)


def number(text: str) -> str:
    """Return the number that a printed cell begins with: "+.0129" -> "0.0129", "1.52 M" -> "1520000", "-" -> "".

    "inf" sorts above all numbers. A cell with further words, such as "3.1 (2.0 to 4.0)", counts by its first number.
    """
    if text.strip() in ("inf", "-inf"):
        return "Infinity" if text.strip() == "inf" else "-Infinity"
    found = NUMBER.match(text.strip()) or NUMBER.match(re.split(r"[\s(\[]", text.strip())[0])
    if not found:
        return ""
    size = SIZES.get((found[3] or "").lower(), 1)
    return repr(float(found[2].replace(",", "")) * size)
