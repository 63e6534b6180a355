r"""Means to fit a grid to a page of LaTeX: font size, wrapped names, panels of columns, pieces of rows.

The width aimed at is 455 pt, the text of ACL's and many two-column styles; `\makebox` centres the table, so in a
narrower text (345 pt in `article`) it hangs evenly into the margins and never off the page.
"""
# ruff: noqa: RUF001 (letters that look like Latin ones are what this is about)

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from analysis.grids.grid import Cell, Grid

BEYOND = (
    r"\providecommand\beyond[2]{\ifdefined\directlua#1\else\ifdefined\XeTeXversion#1\else#2\fi\fi}"
    " % letters that pdflatex lacks"
)
# What pdflatex sets without a package, tried letter by letter (TeX Live 2022).
REFUSED = "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"
LATIN = {chr(code) for code in range(0xA1, 0x180)} - set(REFUSED) - {"\xad"}
KNOWN = LATIN | set("ȘșȚț–—‘’“”†‡•…‰™€№←↑→↓")
GREEK = "αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
SIGNS = {"−": "-", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "∞": r"\infty"}


def command(letter: str) -> str:
    r"""Return LaTeX's name of a Greek letter from Unicode's: GREEK SMALL LETTER FINAL SIGMA -> \varsigma."""
    word = unicodedata.name(letter).replace("FINAL ", "VAR").replace("LAMDA", "LAMBDA").split()[-1]
    return rf"\{word.lower() if letter.islower() else word.capitalize()}"


MATHEMATICS = (
    {letter: f"${command(letter)}$" for letter in GREEK}
    | {letter: f"${sign}$" for letter, sign in SIGNS.items()}
    | dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))  # those that LaTeX takes from Latin
)


def set_letter(letter: str) -> str:
    """Return what prints one letter beyond ASCII."""
    if letter in MATHEMATICS:
        return MATHEMATICS[letter]
    return letter if letter in KNOWN else rf"\beyond{{{letter}}}{{[{ord(letter):X}]}}"


def composed(text: str) -> str:
    """Return the text with each letter and its accents as one character, where Unicode has one."""
    return unicodedata.normalize("NFC", text)


def beyond_pdflatex(text: str) -> list[str]:
    """Return the letters of `text` that pdflatex prints as numbers, sorted."""
    return sorted(c for c in set(composed(text)) if not c.isascii() and c not in MATHEMATICS and c not in KNOWN)


PAGE = 455.0  # pt
BREAKS = " /_-"

# Widths of Computer Modern Roman, parts of the font's size.
WIDTHS = dict.fromkeys("0123456789aghovxyk/*", 0.52) | dict.fromkeys("ijlI.,:;'|!", 0.3)
WIDTHS |= dict.fromkeys("bdnpuq", 0.56) | dict.fromkeys("cezsrtf-()[]", 0.42)
WIDTHS |= dict.fromkeys("mwMW", 0.95) | dict.fromkeys("+<>=%&#@~^", 0.8) | {" ": 0.34, "_": 0.36}
CAPITAL, OTHER, BOLD = 0.74, 0.8, 1.15
NUMBER = 2.8  # of a letter that is printed as its number, [4E00]


@dataclass(frozen=True)
class Size:
    """A size of type: of the cells and of the lines below them, in pt, with how much wider small fonts are cut.

    `name_width`: from which on names are wrapped, pt; `lines`: of one float.
    """

    name: str
    below: str
    points: float
    points_below: float
    separation: float
    lines: int
    name_width: float


# tried in this order; what does not fit by the last one is parted into panels
SIZES = (
    Size("footnotesize", "scriptsize", 8 * 1.06, 7 * 1.12, 4.0, 44, 150.0),
    Size("footnotesize", "scriptsize", 8 * 1.06, 7 * 1.12, 4.0, 44, 90.0),
    Size("scriptsize", "tiny", 7 * 1.12, 5 * 1.3, 3.0, 52, 140.0),
    Size("scriptsize", "tiny", 7 * 1.12, 5 * 1.3, 3.0, 52, 85.0),
)


@dataclass(frozen=True)
class Piece:
    """One tabular: which columns and rows of the grid, and the lines of its rows."""

    columns: tuple[int, ...]
    rows: tuple[int, ...]


def width(text: str, points: float) -> float:
    """Return the width of a text in pt, a little generous."""
    return points * _ems(text)


@lru_cache(maxsize=100_000)
def _ems(text: str) -> float:
    return sum(WIDTHS.get(c, CAPITAL if c.isupper() else OTHER if not c.isalpha() else 0.5) for c in text) + sum(
        NUMBER for c in text if not c.isascii() and beyond_pdflatex(c)
    )


def wrapped(text: str, size: Size) -> list[str]:
    """Return the lines of a name: broken before the minus of a pair, then after a space, slash or hyphen."""
    points, widest = size.points, size.name_width
    if width(text, points) <= widest:
        return [text]
    second, minus, first = text.partition(" - ")
    parts = [second, f"- {first}"] if minus else [text]
    return [line for part in parts for line in _broken(part, points, widest)]


def _broken(text: str, points: float, widest: float) -> list[str]:
    lines = []
    while width(text, points) > widest:
        fits = max(k for k in range(1, len(text) + 1) if width(text[:k], points) <= widest)
        after = max((text.rfind(c, 0, fits) + 1 for c in BREAKS), default=0)
        cut = after if after > fits // 3 else fits
        lines.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return [*lines, text]


def column_widths(grid: Grid, heads: list[tuple[str, str]], size: Size) -> list[float]:
    """Return the width of each column in pt, without the space between them. heads: the two lines of each head."""
    widths = []
    for k, lines in enumerate(heads):
        cells = [row[k] for row in grid.rows]
        texts = [width(line, size.points) for line in lines]
        texts += [_cell(cell, size) if k >= grid.left else _name(cell, size) for cell in cells]
        widths.append(max(texts))
    return widths


def _cell(cell: Cell, size: Size) -> float:
    text = width(cell.text, size.points) * (BOLD if cell.style == "best" else 1.0)
    raised = width(cell.mark + cell.notes, size.points_below)
    return max([text + raised, *(width(f"({line}),", size.points_below) for line in cell.below)])


def _name(cell: Cell, size: Size) -> float:
    return max(width(line, size.points) for line in wrapped(cell.text, size)) + width(cell.notes, size.points_below)


def lines_of(row: list[Cell], left: int, size: Size) -> int:
    """Return how many lines a row takes."""
    names = [len(wrapped(cell.text, size)) for cell in row[:left]]
    return max([*names, *(1 + len(cell.below) for cell in row[left:])])


def fit(grid: Grid, heads: list[tuple[str, str]]) -> tuple[Size, list[list[Piece]]]:
    """Return the size of type, and the pieces of each float, in order."""
    size, panels = SIZES[0], [tuple(range(len(heads)))]
    for k, trial in enumerate(SIZES):
        found = _panels(column_widths(grid, heads, trial), grid.left, trial)
        if k == 0 or len(found) < len(panels):  # the largest type and the widest names among the fewest panels
            size, panels = trial, found
    pieces = [Piece(columns, rows) for rows in _chunks(grid, size) for columns in panels]
    floats: list[list[Piece]] = []
    used = size.lines
    for piece in pieces:
        lines = 4 + sum(lines_of(grid.rows[k], grid.left, size) for k in piece.rows)
        if used + lines > size.lines:
            floats.append([])
            used = 0
        floats[-1].append(piece)
        used += lines
    return size, floats


def _panels(widths: list[float], left: int, size: Size) -> list[tuple[int, ...]]:
    """The columns of each panel: the names, and as many others as fit beside them; at least one."""
    names = tuple(range(left))
    taken = sum(widths[k] + 2 * size.separation for k in names)
    own = [widths[k] + 2 * size.separation for k in range(left, len(widths))]
    fewest = max(1, -(-sum(own) // max(PAGE - taken, 1.0)))
    for count in range(int(fewest), len(own) + 1):
        each = -(-len(own) // count)  # of like length: no column stands alone
        parts = [range(start, min(start + each, len(own))) for start in range(0, len(own), each)]
        if all(taken + sum(own[k] for k in part) <= PAGE for part in parts) or count == len(own):
            return [(*names, *(left + k for k in part)) for part in parts]
    return [names]


def _chunks(grid: Grid, size: Size) -> list[tuple[int, ...]]:
    """The rows of each piece, as many as a float holds."""
    chunks: list[list[int]] = [[]]
    used = 4
    for k, row in enumerate(grid.rows):
        lines = lines_of(row, grid.left, size)
        if chunks[-1] and used + lines > size.lines:
            chunks.append([])
            used = 4
        chunks[-1].append(k)
        used += lines
    return [tuple(chunk) for chunk in chunks]
