r"""Grids -> LaTeX that compiles as it is in a document with \usepackage{booktabs}."""

import re
from typing import TYPE_CHECKING

from analysis.grid import Cell, Grid
from analysis.tables import all_grids

if TYPE_CHECKING:
    from analysis.result import Result

EMPHASIS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
ABBREVIATED = {
    "Classification": "Class.",
    "Clustering": "Clust.",
    "PairClassification": "PairClass.",
    "Reranking": "Rerank.",
    "Retrieval": "Retr.",
    "Summarization": "Summ.",
}
SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "†": r"\dag{}",
    "<": "$<$",
    ">": "$>$",
}


def latex_document(result: "Result") -> str:
    r"""Return all tables, ready for \input, with the notes and the verdict as comments."""
    tables = "\n".join(latex_grid(grid) for grid in all_grids(result))
    comments = "\n".join("% " + " ".join(line.split()) for line in [*result.notes, result.verdict])
    return f"% \\usepackage{{booktabs}} in the preamble\n{tables}\n{comments}\n"


def latex_grid(grid: Grid) -> str:
    """Return one table environment; heads and p-values are broken into lines, so that eight types fit a page."""
    columns = "l" * grid.left + "r" * (len(grid.header) - grid.left)
    caption = f"{grid.caption} {grid.rest}".strip()
    lines = [
        r"\begin{table*}[tp]",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{tab:{grid.name}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *_head(grid.header),
        r"\midrule",
        *[line for row in grid.rows for line in _lines(row)],
        r"\bottomrule",
        r"\end{tabular}",
        *[_footnote(note) for note in grid.footnotes],
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _head(header: list[str]) -> list[str]:
    """The names, abbreviated as in the MTEB paper, and below them what stands in brackets."""
    names, _, counts = zip(*[name.partition(" (") for name in header], strict=True)
    above = _row([escape(ABBREVIATED.get(name, name)) for name in names])
    return [above, _row([escape(f"({count}") if count else "" for count in counts])] if any(counts) else [above]


def _lines(row: list[Cell]) -> list[str]:
    """One line of a table, and further ones below it where a cell has a p-value."""
    lines = [_row([_cell(cell) for cell in row])]
    for k in range(max(len(cell.below) for cell in row)):
        texts = [_nth(cell.below, k) for cell in row]
        lines.append(_row([rf"\scriptsize {escape(text)}" if text else "" for text in texts]))
    return lines


def _nth(below: tuple[str, ...], k: int) -> str:
    """Line k of several, the brackets around them all."""
    if k >= len(below):
        return ""
    return ("(" if k == 0 else "") + below[k] + (")" if k == len(below) - 1 else ",")


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


def _row(texts: list[str]) -> str:
    return " & ".join(texts) + r" \\"


def escape(text: str) -> str:
    """Escape LaTeX's special characters; >=, and a minus before a number or between two names, become mathematics."""
    plain = "".join(SPECIAL.get(character, character) for character in text)
    plain = plain.replace("$>$=", r"$\geq$").replace(" - ", " $-$ ")
    return re.sub(r"^-(?=[.\d])", "$-$", plain)
