"""The differences that `allow=` let through, in the tables of the sections: letters beside names, the text below."""

from collections.abc import Container
from dataclasses import replace

from analysis.control.rule import Footnote
from analysis.grids.grid import Cell, Grid


def footnoted(grid: Grid, notes: list[Footnote], designs: Container[str]) -> Grid:
    """Return the grid with the notes below it, and their letters where its text columns name a design or a pair.

    A pair is `<second> - <first>`, as in the table of pairs; a table that names neither has the notes alone.
    """
    if not notes:
        return grid
    rows = [[*(_lettered(cell, notes, designs) for cell in row[: grid.left]), *row[grid.left :]] for row in grid.rows]
    return replace(grid, rows=rows, footnotes=(*grid.footnotes, *(f"{note.mark}: {note.text}" for note in notes)))


def _lettered(cell: Cell, notes: list[Footnote], designs: Container[str]) -> Cell:
    marks = [note.mark for note in notes if _touched(cell.text, note, designs)]
    return replace(cell, notes=",".join(filter(None, [cell.notes, *marks])))


def _touched(text: str, note: Footnote, designs: Container[str]) -> bool:
    if text in designs:
        return text in note.marked
    parts = text.split(" - ")  # a name may hold it too
    pairs = [(" - ".join(parts[:k]), " - ".join(parts[k:])) for k in range(1, len(parts))]
    return any(one in designs and other in designs and note.parts(one, other) for one, other in pairs)
