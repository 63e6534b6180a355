"""Numbers as tables, figures and sentences print them: scores in percent, p as 0.13 and < 0.001, counts as 41.9 M."""

import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

MINUS = "\N{MINUS SIGN}"


def typeset(text: str) -> str:
    """Return the text with a minus sign before numbers and between names, as page, figures and LaTeX have it.

    Markdown, csv and the screen keep the hyphen, which one can type and search for.
    """
    return re.sub(r"(?<![\w.)\]])-(?=\.?\d)", MINUS, text.replace(" - ", f" {MINUS} "))


@dataclass(frozen=True)
class Unit:
    """How scores of 0 to 1 and their differences are printed: in percent, with so many digits after the point."""

    digits: int = 1

    def score(self, value: float) -> str:
        """A score: 43.2; "-" where there is none."""
        return f"{100 * value:.{self.digits}f}" if isfinite(value) else "-"

    def signed(self, value: float) -> str:
        """A difference with its sign: +0.7; plus also for what rounds to zero."""
        text = f"{100 * value:+.{self.digits}f}" if isfinite(value) else "-"
        return text.replace("-", "+") if text.strip("-0.") == "" and text != "-" else text

    def interval(self, low: float, high: float) -> str:
        """The ends of an interval of differences: [-0.2, +1.6]; "-" where there is none."""
        return f"[{self.signed(low)}, {self.signed(high)}]" if isfinite(low) and isfinite(high) else "-"

    def points(self, value: float, sign: bool = False) -> str:
        """A difference in a sentence: 2.3 points, +0.7 points."""
        return f"{self.signed(value) if sign else self.score(value)} points"

    def margin(self, value: float) -> str:
        """A margin that was stated, with the digits that it has: 1 point, 0.5 points."""
        return f"{round(100 * value, 9):g} point{'s' * (value != 0.01)}"


def count_of(number: int, noun: str) -> str:
    """Return "1 pair", or "6 pairs"."""
    head, *rest = noun.split(" ", 1)
    return " ".join([f"{number:,} {head}{'s' * (number != 1)}", *rest])


def p_text(p: float) -> str:
    """A p-value with two digits: 0.13, 0.20, 0.0077, < 0.001; "-" where there is none."""
    if not isfinite(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:#.2g}"


def p_is(p: float, of: str = "p") -> str:
    """Return "p = 0.13", or "p < 0.001"."""
    text = p_text(p)
    return f"{of} {text}" if text.startswith("<") else f"{of} = {text}"


def level(alpha: float) -> str:
    """The level of an interval whose tests are made at `alpha`: 95 %."""
    return f"{100 * (1 - alpha):g} %"


def plain(value: Any, digits: int = 3) -> str:
    """A value of a column without a format of its own: words as they are, whole numbers, other numbers; "-": none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}f}" if isfinite(value) else "-"
    return f"{value:,}" if isinstance(value, int) else "-" if value is None else str(value)


def count(value: float | None) -> str:
    """A number of parameters: 512, 41.9 M, 1.28 B; "-" where it is not known."""
    return _scaled(value, {"B": 1e9, "M": 1e6, "K": 1e3})


def whole(value: float) -> str:
    """A number without figures after the point: 3,267; "-" where it is not known."""
    return f"{value:,.0f}" if isfinite(value) else "-"


def operations(value: float | None) -> str:
    """A number of floating-point operations: 6.21 T, 1.28 E; "-" where it is not known."""
    return _scaled(value, {"E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9})


def _scaled(value: float | None, sizes: dict[str, float]) -> str:
    if value is None or not isfinite(value):
        return "-"
    return next(
        (f"{value / size:.3g} {letter}" for letter, size in sizes.items() if value >= 0.9995 * size), f"{value:.0f}"
    )
