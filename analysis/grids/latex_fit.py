r"""Means to fit a grid to a page of LaTeX: font size, wrapped names, panels of columns, pieces of rows.

The width aimed at is 455 pt, the text of ACL's and many two-column styles; `\makebox` centres the table, so in a
narrower text (345 pt in `article`) it hangs evenly into the margins and never off the page.
"""
# ruff: noqa: RUF001 (letters that look like Latin ones are what this is about)

import unicodedata
from collections.abc import Iterable
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
HEAD = 4  # lines of a tabular beside its rows
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
    letters = sum(WIDTHS.get(c, CAPITAL if c.isupper() else OTHER if not c.isalpha() else 0.5) for c in text)
    return letters + sum(NUMBER for c in text if not c.isascii() and beyond_pdflatex(c))


def wrapped(text: str, size: Size) -> list[str]:
    """Return the lines of a name: broken before the minus of a pair, then after a space, slash or hyphen."""
    if width(text, size.points) <= size.name_width:
        return [text]
    second, minus, first = text.partition(" - ")
    parts = [second, f"- {first}"] if minus else [text]
    return [line for part in parts for line in _broken(part, size.points, size.name_width)]


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
        of_cell = _cell if k >= grid.left else _name
        widths.append(max([width(line, size.points) for line in lines] + [of_cell(row[k], size) for row in grid.rows]))
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
        trial_panels = _panels(column_widths(grid, heads, trial), grid.left, trial)
        if k == 0 or len(trial_panels) < len(panels):  # the largest type and the widest names among the fewest panels
            size, panels = trial, trial_panels
    chunks = _packed((lines_of(row, grid.left, size) for row in grid.rows), size.lines, HEAD)
    pieces = [Piece(columns, tuple(rows)) for rows in chunks for columns in panels]
    counts = (HEAD + sum(lines_of(grid.rows[k], grid.left, size) for k in piece.rows) for piece in pieces)
    return size, [[pieces[k] for k in group] for group in _packed(counts, size.lines)]


def _packed(counts: Iterable[int], most: int, head: int = 0) -> list[list[int]]:
    """Return the places of things of so many lines in groups of `most` lines, of which each group's head takes some."""
    groups: list[list[int]] = [[]]
    used = head
    for k, count in enumerate(counts):
        if groups[-1] and used + count > most:
            groups.append([])
            used = head
        groups[-1].append(k)
        used += count
    return groups


def _panels(widths: list[float], left: int, size: Size) -> list[tuple[int, ...]]:
    """Return the columns of each panel: the names, and as many others as fit beside them; at least one."""
    names, spaced = tuple(range(left)), [width + 2 * size.separation for width in widths]
    taken, total = sum(spaced[:left]), len(widths) - left
    fewest = max(1, -(-sum(spaced[left:]) // max(PAGE - taken, 1.0)))
    for count in range(int(fewest), total + 1):
        each = -(-total // count)  # of like length: no column stands alone
        parts = [range(start, min(start + each, len(widths))) for start in range(left, len(widths), each)]
        if all(taken + sum(spaced[k] for k in part) <= PAGE for part in parts) or count == total:
            return [(*names, *part) for part in parts]
    return [names]
