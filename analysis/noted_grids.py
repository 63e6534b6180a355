"""Differences that `allow=` let through stand in every further table too: letters at the names, the text below."""

from dataclasses import replace

from analysis.control.footnotes import Footnote
from analysis.grid import Cell, Grid


def noted(grid: Grid, footnotes: list[Footnote]) -> Grid:
    """Return a section's table with the footnotes of the designs and pairs (`second - first`) that its rows name.

    Only the left columns hold names. The text stands below even where no row names a design.
    """
    if not footnotes:
        return grid
    rows = [[*(_marked(cell, footnotes) for cell in row[: grid.left]), *row[grid.left :]] for row in grid.rows]
    texts = tuple(f"{note.mark}: {note.text}" for note in footnotes)
    return replace(grid, rows=rows, footnotes=(*texts, *grid.footnotes))


def _marked(cell: Cell, footnotes: list[Footnote]) -> Cell:
    second, _, first = cell.text.partition(" - ")
    own = [note.mark for note in footnotes if _touches(note, cell.text, second, first)]
    return replace(cell, notes=",".join(own)) if own and not cell.notes else cell


def _touches(note: Footnote, text: str, second: str, first: str) -> bool:
    if first in note.value_of and second in note.value_of:
        return note.parts(first, second)
    return text in note.marked
