r"""Grids -> LaTeX that compiles as it is in a document with \usepackage{booktabs}."""

import re
from collections.abc import Iterable

from analysis.grids.formats import typeset
from analysis.grids.grid import Cell, Grid
from analysis.grids.latex_fit import BEYOND, Piece, Size, composed, fit, lines_of, set_letter, wrapped

MOST_WAITING = 8  # floats of one table, after which LaTeX must print what waits: it holds 18, with older kernels
EMPHASIS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
ABBREVIATED = {"Classification": "Class.", "Clustering": "Clust.", "PairClassification": "PairClass."}
ABBREVIATED |= {"Reranking": "Rerank.", "Retrieval": "Retr.", "Summarization": "Summ."}
SPECIAL = {c: rf"\{c}" for c in "&%$#_{}"} | {c: f"${c}$" for c in "<>"}
SPECIAL |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "†": r"\dag{}"}


def latex_grid(grid: Grid) -> str:
    r"""Return one float, or several that continue each other where the grid is too wide or too long for a page.

    Heads and p-values are broken into lines; what is still too wide is set smaller, then parted into panels.
    """
    heads = [_parts(name) for name in grid.header]
    size, floats = fit(grid, heads)
    texts = []
    for k, pieces in enumerate(floats):
        rest = grid.rest.partition("; ")[0].removesuffix(".") + "." if grid.rest else ""  # a paper has no csv beside it
        caption = f"{grid.caption} {rest}".strip() if k == 0 else "(continued)"
        tabulars = [_tabular(grid, heads, piece, size) for piece in pieces]
        lines = [
            *([r"\clearpage"] if k and k % MOST_WAITING == 0 else []),
            r"\begin{table*}[tp]",
            rf"\centering\{size.name}\setlength{{\tabcolsep}}{{{size.separation:g}pt}}",
            *([r"\addtocounter{table}{-1}"] if k else []),
            rf"\caption{{{escape(caption)}}}\smallskip",
            *([] if k else [rf"\label{{tab:{grid.name}}}"]),
            "\n\\par\\medskip\n".join(tabulars),
            *([_footnote(note) for note in grid.footnotes] if k == len(floats) - 1 else []),
            r"\end{table*}",
        ]
        texts.append("\n".join(lines) + "\n")
    return defined("".join(texts))


def defined(text: str) -> str:
    r"""Return LaTeX with the definition of \beyond before it, where it is used."""
    return f"{BEYOND}\n{text}" if r"\beyond{" in text else text


def _tabular(grid: Grid, heads: list[tuple[str, str]], piece: Piece, size: Size) -> str:
    left = sum(k < grid.left for k in piece.columns)
    columns = "l" * left + "r" * (len(piece.columns) - left)
    rows = [[grid.rows[k][column] for column in piece.columns] for k in piece.rows]
    names, counts = zip(*(heads[k] for k in piece.columns), strict=True)
    lines = [rf"\makebox[\linewidth][c]{{\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [_row(map(escape, names)), *([_row(map(escape, counts))] if any(counts) else []), r"\midrule"]
    lines += [line for row in rows for line in _lines(row, left, size)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}"])


def _parts(name: str) -> tuple[str, str]:
    """Return a head's name, abbreviated as in the MTEB paper, and what stands in brackets, for the line below it."""
    word, _, count = name.partition(" (")
    return ABBREVIATED.get(word, word), f"({count}" if count else ""


def _lines(row: list[Cell], left: int, size: Size) -> list[str]:
    """Return one line of a table, and further ones below it where a cell has a p-value or a name is wrapped."""
    names, count = [wrapped(cell.text, size) for cell in row[:left]], lines_of(row, left, size)
    strut = r"\rule{0pt}{2.6ex}" if count > 1 else ""
    first = [_cell(cell, text[0]) for cell, text in zip(row, names, strict=False)]
    lines = [_row([strut + first[0], *first[1:], *(_cell(cell) for cell in row[left:])])]
    for k in range(1, count):
        further = [rf"\quad {re.sub(r'^- ', '$-$ ', escape(text[k]))}" if k < len(text) else "" for text in names]
        texts = [_nth(cell.below, k - 1) for cell in row[left:]]
        lines.append(_row([*further, *(rf"\{size.below} {escape(text)}" if text else "" for text in texts)]))
    return lines


def _nth(below: tuple[str, ...], k: int) -> str:
    """Line k of several, the brackets around them all."""
    if k >= len(below):
        return ""
    return ("(" if k == 0 else "") + below[k] + (")" if k == len(below) - 1 else ",")


def _cell(cell: Cell, text: str | None = None) -> str:
    text = EMPHASIS[cell.style] % escape(cell.text if text is None else text)
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
    """Escape LaTeX's special characters; >=, and a minus before a number or between two names, become mathematics.

    Letters that pdflatex lacks: see `latex_letters`; a file that holds `\\beyond` begins with `BEYOND`.
    """
    plain = "".join(SPECIAL.get(c, c if c.isascii() else set_letter(c)) for c in composed(typeset(text)))
    return plain.replace("$>$=", r"$\geq$")
