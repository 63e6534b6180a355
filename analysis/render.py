r"""One renderer: a data frame with a format for each column -> Markdown, LaTeX and HTML.

LaTeX needs \usepackage{booktabs,graphicx}.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape as html_escape
from numbers import Real
from typing import Any

import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.formats import Unit, plain, typeset

Format = Callable[[Any], str]
LONG = 40  # rows of a page: a longer table goes on in another float
SMALL = "\\scriptsize\n"  # for more than half a page
WIDTH = r"\ifdim\width>\linewidth\linewidth\else\width\fi"  # narrower tables keep their size
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
LATEX = {c: rf"\{c}" for c in "&%$#_{}"} | {c: f"${c}$" for c in "<>\N{MULTIPLICATION SIGN}"}
LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "†": r"\dag{}"}
LATEX |= {"\N{MINUS SIGN}": "$-$", "\N{PLUS-MINUS SIGN}": r"$\pm$", "\N{MULTIPLICATION SIGN}": r"$\times$"}
BEST, SECOND = "best", "second"


@dataclass(frozen=True)
class Table:
    """`frame`: the rows as they are shown, values and not yet text, its columns the header; `formats`: column -> text
    of a value, else `plain` with `digits`. The first `left` columns hold text. `emphasis`: (row, column) -> BEST or
    SECOND. `rest` says what is not shown; `footnotes` stand below the rows: "a: threads: 2 in eos-causal"."""

    name: str
    title: str
    caption: str
    frame: pd.DataFrame
    formats: Mapping[str, Format] = field(default_factory=dict)
    left: int = 1
    digits: int = 3
    emphasis: Mapping[tuple[int, str], str] = field(default_factory=dict)
    rest: str = ""
    footnotes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The caption and what is not shown."""
        return f"{self.caption} {self.rest}".strip()

    def first(self, rows: int, which: str) -> "Table":
        """Return the table with so many rows at most. which: "pairs; pairs.csv has all"."""
        total = len(self.frame)
        if total <= rows:
            return self
        return replace(self, frame=self.frame.head(rows), rest=f"The first {rows} of {total} {which}.")


@dataclass(frozen=True)
class Section:
    """What one question gets: tables, figures, csv files (name -> every digit), notes. `main`: printed too."""

    name: str
    title: str
    tables: list[Table] = field(default_factory=list)
    draw: Callable[[], list[Drawing]] = list
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    main: bool = False


def texts(table: Table, again: bool = False) -> pd.DataFrame:
    """Return the table's cells as text; without `again` "" for a name that repeats the row above before the last column
    of text."""
    usual = partial(plain, digits=table.digits)
    shown = {name: [table.formats.get(name, usual)(v) for v in table.frame[name].tolist()] for name in table.frame}
    frame = pd.DataFrame(shown, columns=table.frame.columns, dtype=str)
    names = frame.iloc[:, : 0 if again else max(0, table.left - 1)]
    repeated = (names == names.shift()).cummin(axis=1)
    return frame.mask(repeated.reindex(columns=frame.columns, fill_value=False), "")


def _cells(
    table: Table, escape: Callable[[str], str], emphasis: dict[str, str], again: bool = False
) -> list[list[str]]:
    """Return header and rows, escaped and emphasised."""
    frame = texts(table, again)
    rows = [[escape(str(name)) for name in frame]]
    for k, row in enumerate(frame.itertuples(index=False, name=None)):
        marks = [emphasis.get(table.emphasis.get((k, name), ""), "{}") for name in frame]
        rows.append([mark.replace("{}", escape(text)) for mark, text in zip(marks, row, strict=True)])
    return rows


def markdown(table: Table) -> str:
    """Return the table with its caption below, columns padded so that the source reads as a table too."""
    cells = _cells(table, escape_markdown, {BEST: "**{}**", SECOND: "*{}*"})
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    rule = [("-" * w if k < table.left else "-" * (w - 1) + ":") for k, w in enumerate(widths)]

    def line(row: list[str]) -> str:
        sides = [str.ljust if k < table.left else str.rjust for k in range(len(row))]
        return f"| {' | '.join(pad(text, w) for pad, text, w in zip(sides, row, widths, strict=True))} |"

    notes = [f"{escape_markdown(note)}\n" for note in table.footnotes]
    words = table.words.replace("underlined: second", "italic: second")  # Markdown has no underline
    return "\n".join([*map(line, (cells[0], rule, *cells[1:])), "", *notes, escape_markdown(words), ""])


def latex(table: Table) -> str:
    r"""Return a float no wider than the text; above LONG rows several, since a longtable may be wider than the page."""
    header, *rows = _cells(table, escape_latex, {BEST: r"\textbf{{}}", SECOND: r"\underline{{}}"})
    form = "l" * table.left + "r" * (len(header) - table.left)
    heads = [f"\\caption{{{escape_latex(table.words)}}}\\label{{tab:{table.name}}}"]
    parts = [rows[k : k + LONG] for k in range(0, len(rows), LONG)] or [[]]
    heads += [r"\addtocounter{table}{-1}\caption{(continued)}"] * (len(parts) - 1)
    notes = "".join(rf"\par\smallskip{{\scriptsize {escape_latex(note)}}}" + "\n" for note in table.footnotes)
    floats = []
    for head, part in zip(heads, parts, strict=True):
        safe = [[re.sub(r"^(?=[\[*])", "{}", first), *others] for first, *others in part]  # else an option of \\
        styler = pd.DataFrame(safe, columns=header).style.hide(axis="index")
        body = styler.to_latex(column_format=form, hrules=True)
        floats.append(
            f"\\begin{{table*}}[tp]\n\\centering{head}\\smallskip\n{SMALL if len(part) > LONG / 2 else ''}"
            f"\\resizebox{{{WIDTH}}}{{!}}{{%\n{body}}}\n{notes}\\end{{table*}}\n"
        )
    return "\n".join(floats)


def html(table: Table) -> str:
    """Return the table and its caption; `data-v` is the value by which a click sorts, so every row has its names."""
    header, *rows = _cells(table, escape_html, {BEST: "<strong>{}</strong>", SECOND: "<u>{}</u>"}, again=True)
    left = [" class=left" if k < table.left else "" for k in range(len(header))]
    heads = [f"<th scope=col{side}><button>{name}</button></th>" for side, name in zip(left, header, strict=True)]
    lines = []
    for row, values in zip(rows, table.frame.itertuples(index=False, name=None), strict=True):
        first, *others = [
            f'{side} data-v="{_value(value)}">{text}' for side, value, text in zip(left, values, row, strict=True)
        ]
        cells = [f"<th scope=row{first}</th>", *(f"<td{cell}</td>" for cell in others)]
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    words = [*table.footnotes, table.words]
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{escape_html(table.title)}" id="table-{table.name}">'
        f"<table><thead><tr>{''.join(heads)}</tr></thead>\n<tbody>{''.join(lines)}</tbody></table></div>"
        + "".join(f"<p class=said>{escape_html(text)}</p>" for text in words)
    )


def _value(value: Any) -> str:
    """The value by which JavaScript sorts."""
    return repr(float(value)) if isinstance(value, Real) else html_escape(str(value))


def escape_markdown(text: str) -> str:
    r"""Return the text with backslashes before what would be markup: a|b -> a\|b, _x_ -> \_x\_; one line."""
    return MARKUP.sub(lambda match: "".join(rf"\{c}" for c in match[0]), " ".join(text.splitlines()))


def escape_latex(text: str) -> str:
    """Escape LaTeX's special characters; a minus before a number or between two names becomes mathematics."""
    return "".join(LATEX.get(c, c) for c in typeset(text))


def escape_html(text: str) -> str:
    """Escape HTML; what follows a plus-minus sign can be left out on a narrow screen."""
    return re.sub(r" (±\S+)", r"<span class=pm> \1</span>", html_escape(typeset(text)))


def markdown_section(section: Section, drawings: Sequence[Drawing], depth: int = 1, kind: str = "png") -> str:
    """Return a section as Markdown: tables, figures by name with their captions, notes.

    depth: of its heading; kind: of the figures' files, of which a png is shown and a pdf is linked.
    """
    head, below = "#" * depth, "#" * (depth + 1)
    parts = [f"{head} {escape_markdown(section.title)}\n"]
    for table in section.tables:
        title = f"{below} {escape_markdown(table.title)}\n\n" if table.title != section.title else ""
        parts.append(title + markdown(table))
    for one in drawings:
        link = f"{'!' * (kind == 'png')}[{escape_markdown(one.title)}](figures/{one.name}.{kind})"
        parts.append(f"{link}\n\n{escape_markdown(one.caption)}\n")
    return "\n".join([*parts, "".join(f"- {escape_markdown(note)}\n" for note in section.notes)])


def in_percent(frame: pd.DataFrame) -> dict[str, Format]:
    """Return the formats of a frame whose numbers with a point are all scores."""
    return {str(name): Unit().score for name in frame.select_dtypes("float")}
