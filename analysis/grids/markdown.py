"""Grids -> Markdown, with columns padded so that the source reads as a table too."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.grids.grid import Cell, Grid

if TYPE_CHECKING:
    from analysis.analyse import Result


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
    return MARKUP.sub(lambda found: "".join(rf"\{c}" for c in found[0]), " ".join(text.splitlines()))


EMPHASIS = {"best": "**{}**", "second": "*{}*", "": "{}"}
TITLES = {
    "by-type": "Scores by task type",
    "before-after": "Before and after training",
    "pairs": "Pairs of designs",
    "effects": "Main effects and interactions",
    "marginals": "Marginal means",
    "effects-wide": "Main effects and interactions over more designs",
    "marginals-wide": "Marginal means over more designs",
}


def document(result: "Result", folder: Path | None = None) -> str:
    """Return the whole report: tables, notes, verdict. `folder` says where the rest of a list that is cut lies."""
    from analysis.tables.main import all_grids

    return _document(result, all_grids(result), folder, words=escape)


def printed(result: "Result", folder: Path) -> str:
    """Return what the screen shows: the main tables, the names of the others, notes, verdict."""
    from analysis.tables.main import further_grids, main_grids

    titles = [grid.title for grid in further_grids(result)]
    more = f"## Further tables\n\n{'; '.join(titles)}: in {folder / 'table.md'}.\n" if titles else ""
    return _document(result, main_grids(result), folder, more)


def _document(
    result: "Result", grids: list[Grid], folder: Path | None, more: str = "", words: Callable[[str], str] = str
) -> str:
    """words: what is done to notes and verdict; on a screen they are read, and copied, as they are."""
    parts = []
    for grid in grids:
        parts.append(f"## {grid.title or TITLES[grid.name]}\n\n{markdown_grid(grid)}")
        if grid.rest:
            parts[-1] += f"\n{grid.rest}" + (f" Folder: {folder}." if folder else "") + "\n"
    notes = "\n".join(f"- {words(note)}" for note in result.notes)
    return "\n".join([*parts, *filter(None, [more]), f"## Notes\n\n{notes}\n", f"{words(result.verdict)}\n"])


def markdown_grid(grid: Grid) -> str:
    """Return one table with its footnotes and its caption below."""
    texts = [[escape(name) for name in grid.header], *[[_cell(cell) for cell in row] for row in grid.rows]]
    widths = [
        max(3, *(len(row[k]) for row in texts)) for k in range(len(grid.header))
    ]  # a rule needs a dash beside ":"
    rule = [("-" * w if k < grid.left else "-" * (w - 1) + ":") for k, w in enumerate(widths)]
    lines = [_line(texts[0], widths, grid.left), _line(rule, widths, grid.left)]
    lines += [_line(row, widths, grid.left) for row in texts[1:]]
    footnotes = [f"{escape(note)}\n" for note in grid.footnotes]  # a blank line between, or they would be one paragraph
    return "\n".join([*lines, "", *footnotes, escape(grid.caption), ""])


def _cell(cell: Cell) -> str:
    text = (
        EMPHASIS[cell.style].format(escape(cell.text)) + escape(cell.mark) + (f" [{cell.notes}]" if cell.notes else "")
    )
    return f"{text} ({', '.join(cell.below)})" if cell.below else text


def _line(texts: list[str], widths: list[int], left: int) -> str:
    cells = [t.ljust(w) if k < left else t.rjust(w) for k, (t, w) in enumerate(zip(texts, widths, strict=True))]
    return "| " + " | ".join(cells) + " |"
