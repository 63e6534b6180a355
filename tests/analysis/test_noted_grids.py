"""Letters at names of designs and of pairs in a section's table."""

from analysis.control.footnotes import Footnote
from analysis.grid import Cell, Grid
from analysis.noted_grids import noted

NOTE = Footnote(
    "a", "threads: 2 in b (allowed)", ("threads",), {"a": frozenset({0}), "b": frozenset({1})}, frozenset("b")
)


def test_letters_stand_at_what_differs():
    names = ["a", "b", "b - a", "a - a", "other"]
    grid = Grid("x", "caption", ["Design", "Score"], [[Cell(name), Cell("b")] for name in names], footnotes=("z: own",))
    found = noted(grid, [NOTE])
    assert [row[0].notes for row in found.rows] == ["", "a", "a", "", ""]
    assert all(row[1].notes == "" for row in found.rows)
    assert found.footnotes == ("a: threads: 2 in b (allowed)", "z: own")
    assert noted(grid, []) is grid
