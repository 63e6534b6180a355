"""Grids -> Markdown, with columns padded so that the source reads as a table too."""

import re

from analysis.grids.grid import Cell, Grid

MARKUP = re.compile(
    r"""
    [*|`~$]                             # emphasis, cells, code, struck out, GitHub's mathematics
    | \\(?=[!-/:-@\[-`{-~])             # a backslash that would escape what follows
    | <(?=[A-Za-z/!?])                  # HTML and autolinks
    | &(?=\#?\w+;)                      # entities
    | (?<=\])[(\[]                      # links: [a](b), [a][b]
    | (?<!_)(?<![^\W_])_+ | _+(?![\w])  # underscores at an end of a word; those within it are letters
    """,
    re.VERBOSE,
)


def escape(text: str) -> str:
    r"""Return the text with backslashes before what would be markup: a|b -> a\|b, _x_ -> \_x\_; one line."""
    return MARKUP.sub(lambda match: "".join(rf"\{c}" for c in match[0]), " ".join(text.splitlines()))


EMPHASIS = {"best": "**{}**", "second": "*{}*", "": "{}"}


def markdown_grid(grid: Grid) -> str:
    """Return one table with its footnotes and its caption below."""
    texts = [[escape(name) for name in grid.header], *[[_cell(cell) for cell in row] for row in grid.rows]]
    widths = [max(3, *map(len, column)) for column in zip(*texts, strict=True)]  # a rule needs a dash beside ":"
    rule = [("-" * w if k < grid.left else "-" * (w - 1) + ":") for k, w in enumerate(widths)]
    lines = [_line(row, widths, grid.left) for row in (texts[0], rule, *texts[1:])]
    footnotes = [f"{escape(note)}\n" for note in grid.footnotes]  # a blank line between, or they would be one paragraph
    return "\n".join([*lines, "", *footnotes, escape(grid.caption), ""])


def _cell(cell: Cell) -> str:
    text = EMPHASIS[cell.style].format(escape(cell.text)) + escape(cell.mark)
    text += f" [{cell.notes}]" if cell.notes else ""
    return f"{text} ({', '.join(cell.below)})" if cell.below else text


def _line(texts: list[str], widths: list[int], left: int) -> str:
    cells = [t.ljust(w) if k < left else t.rjust(w) for k, (t, w) in enumerate(zip(texts, widths, strict=True))]
    return "| " + " | ".join(cells) + " |"
