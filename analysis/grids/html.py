"""Grid -> what the page's template prints, each cell with the value by which a click sorts."""

import re
from dataclasses import dataclass

from analysis.grids.grid import Cell, Grid

NUMBER = re.compile(r"([<>]=?\s*)?([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(K|M|B|%)?$", re.IGNORECASE)
NO_BREAK, LONGEST = "\u00a0", 40
SIZES = {"k": 1e3, "m": 1e6, "b": 1e9}


@dataclass(frozen=True)
class HtmlCell(Cell):
    """A cell, `value`: its number as JavaScript reads it, its text in a column of text, or "" for none; `again`: the
    name of the row above, which the other formats leave out, and which a sorted table needs."""

    value: str = ""
    again: bool = False


@dataclass(frozen=True)
class HtmlGrid(Grid):
    """A grid of `HtmlCell`, its title never empty; `narrow`: its names are short enough to stay on one line; `labels`:
    what a card calls each column, without what stands in brackets but where two would be called the same."""

    narrow: bool = False
    labels: tuple[str, ...] = ()


def html_grid(grid: Grid) -> HtmlGrid:
    """Return the grid with sortable values; an empty cell before the last column of text repeats the one above."""
    rows: list[list[Cell]] = []
    for row in grid.rows:
        above = rows[-1] if rows else []
        rows.append([_cell(cell, k, grid, above) for k, cell in enumerate(row)])
    header = [re.sub(r"\([^)]*\)", lambda m: m[0].replace(" ", NO_BREAK), name) for name in grid.header]
    narrow = all(len(row[0].text) <= LONGEST for row in rows)
    title = grid.title or grid.name.capitalize()
    bare = [name.partition(" (")[0] for name in header]
    labels = tuple(short if bare.count(short) == 1 else name for short, name in zip(bare, header, strict=True))
    return HtmlGrid(**{**vars(grid), "title": title, "header": header, "rows": rows}, narrow=narrow, labels=labels)


def _cell(cell: Cell, column: int, grid: Grid, above: list[Cell]) -> HtmlCell:
    again = column < grid.left - 1 and not cell.text and bool(above)
    text = above[column].text if again else cell.text
    return HtmlCell(**{**vars(cell), "text": text}, value=text if column < grid.left else number(text), again=again)


def number(text: str) -> str:
    """Return the number that a printed cell begins with: "+.0129" -> "0.0129", "1.52 M" -> "1520000", "-" -> "".

    "inf" sorts above all numbers. A cell with further words, such as "3.1 (2.0 to 4.0)", counts by its first number.
    """
    text = text.strip()
    if text in ("inf", "-inf"):
        return text.replace("inf", "Infinity")
    match = NUMBER.match(text) or NUMBER.match(re.split(r"[\s(\[]", text)[0])
    return repr(float(match[2].replace(",", "")) * SIZES.get((match[3] or "").lower(), 1)) if match else ""
