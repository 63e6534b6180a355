"""Footnotes in the tables of the sections."""

from analysis.control.rule import Footnote
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import footnoted

DESIGNS = {"a", "b", "a - b", "c"}
VALUES = {"a": frozenset({0}), "b": frozenset({1}), "a - b": frozenset({0}), "c": frozenset({0})}
NOTE = Footnote("x", "threads: 2 in b, 4 in the others (allowed)", ("threads",), VALUES, frozenset({"b"}))


def marks(*names, left=1):
    grid = Grid("g", "", ["Design", "n"], [[Cell(name), Cell("b")] for name in names], left=left)
    return footnoted(grid, [NOTE], DESIGNS)


def test_designs_and_pairs_that_differ_have_the_letter():
    found = marks("a", "b", "b - a", "c - a", "a - b - b", "c - a - b", "STS")
    assert [row[0].notes for row in found.rows] == ["", "x", "x", "", "x", "", ""]
    assert found.footnotes == ("x: threads: 2 in b, 4 in the others (allowed)",)


def test_numbers_have_none_and_without_notes_nothing_changes():
    assert [row[1].notes for row in marks("b").rows] == [""]
    assert [row[1].notes for row in marks("b", left=2).rows] == ["x"]
    grid = Grid("g", "", ["Design"], [[Cell("b")]])
    assert footnoted(grid, [], DESIGNS) is grid
