r"""Grids -> LaTeX that compiles as it is in a document with \usepackage{booktabs,graphicx}."""

import re
from collections.abc import Iterable

from analysis.grids.formats import typeset
from analysis.grids.grid import Cell, Grid

EMPHASIS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
SPECIAL = {c: rf"\{c}" for c in "&%$#_{}"} | {c: f"${c}$" for c in "<>"}
SPECIAL |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "†": r"\dag{}"}
SPECIAL |= {"\N{MINUS SIGN}": "$-$"}


def latex_grid(grid: Grid) -> str:
    r"""Return one float, whose table is made as wide as the text."""
    left, rest = grid.left, grid.rest.partition("; ")[0].removesuffix(".") + "." if grid.rest else ""
    lines = [
        r"\begin{table*}[tp]",
        rf"\centering\caption{{{escape(f'{grid.caption} {rest}'.strip())}}}\label{{tab:{grid.name}}}\smallskip",
        rf"\resizebox{{\linewidth}}{{!}}{{\begin{{tabular}}{{{'l' * left + 'r' * (len(grid.header) - left)}}}",
        r"\toprule",
        _row(map(escape, grid.header)),
        r"\midrule",
        *(line for row in grid.rows for line in _lines(row)),
        r"\bottomrule",
        r"\end{tabular}}",
        *map(_footnote, grid.footnotes),
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _lines(row: list[Cell]) -> list[str]:
    """Return one line of a table, and a further one below it where a cell has a p-value."""
    lines = [_row(map(_cell, row))]
    if any(cell.below for cell in row):
        below = [f"({', '.join(cell.below)})" if cell.below else "" for cell in row]
        lines.append(_row(rf"\scriptsize {escape(text)}" if text else "" for text in below))
    return lines


def _cell(cell: Cell) -> str:
    text = EMPHASIS[cell.style] % escape(cell.text)
    raised = ",".join(filter(None, [_mark(cell.mark), rf"\mathrm{{{cell.notes}}}" if cell.notes else ""]))
    return f"{text}$^{{{raised}}}$" if raised else text


def _mark(mark: str) -> str:
    """Stars as they are; a dagger and letters as mathematics sets them upright."""
    return re.sub(r"[a-z.]+", lambda word: rf"\mathrm{{{word[0]}}}", mark).replace("†", r"\dagger")


def _footnote(note: str) -> str:
    """One paragraph below the rows, inside the float, which wraps without widening a column."""
    mark, _, text = note.partition(": ")
    return rf"\par\smallskip\parbox{{.9\linewidth}}{{\scriptsize $^{{\mathrm{{{mark}}}}}$ {escape(text)}}}"


def _row(texts: Iterable[str]) -> str:
    return " & ".join(texts) + r" \\"


def escape(text: str) -> str:
    """Escape LaTeX's special characters; >=, and a minus before a number or between two names, become mathematics."""
    return "".join(SPECIAL.get(c, c) for c in typeset(text)).replace("$>$=", r"$\geq$")
