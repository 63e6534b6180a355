"""A table without a format: cells with their emphasis, which Markdown and LaTeX each print in their way."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """`style`: "best", "second" or ""; `mark`: stars after the text; `notes`: the letters of its footnotes;
    `below`: lines below, such as the p-value."""

    text: str
    style: str = ""
    mark: str = ""
    notes: str = ""
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grid:
    """`name` labels the table; `left` columns hold text, the others numbers; `rest` says what is not shown.

    `footnotes` are part of the table itself: `a: threads: 2 in eos-causal, 4 in the others (allowed)`.
    `title` is the heading above it.
    """

    name: str
    caption: str
    header: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    left: int = 1
    rest: str = ""
    footnotes: tuple[str, ...] = ()
    title: str = ""
