"""Numbers as a table prints them."""

import re
from dataclasses import dataclass
from math import isnan

MINUS = "\N{MINUS SIGN}"


def typeset(text: str) -> str:
    """Return the text with a minus sign before numbers and between names, as page, figures and LaTeX have it.

    Markdown, csv and the screen keep the hyphen, which one can type and search for.
    """
    signs = text.replace(" - ", f" {MINUS} ").replace("+-", "\N{PLUS-MINUS SIGN}")
    return re.sub(r"(?<![\w.)\]])-(?=\.?\d)|(?<=\bW)-(?!\w)", MINUS, signs)  # W-: the rank sum of losses


@dataclass(frozen=True)
class Numbers:
    """Print scores and their differences: as they are or, `percent`, times 100, with so many `digits`.

    Every rendering takes them from here; files of data hold the scores as they are. Times 100 a 0 stands before the
    point, since .43 would be read as 43 %.
    """

    percent: bool = False
    digits: int = 4

    def score(self, value: float) -> str:
        """A score: .4312, or 43.12."""
        return f"{100 * value:.{self.digits}f}" if self.percent else score(value, self.digits)

    def signed(self, value: float) -> str:
        """A difference with its sign: +.0129, or +1.29; plus also for what rounds to zero."""
        text = f"{100 * value if self.percent else value:+.{self.digits}f}"
        text = text if float(text) != 0 else f"+{0:.{self.digits}f}"
        return text if self.percent else _bare(text)

    def interval(self, low: float, high: float) -> str:
        """The ends of an interval of differences: [+.0010, +.0210]; n.a. where there is none."""
        return f"[{self.signed(low)}, {self.signed(high)}]" if not isnan(low) else "n.a."

    def margin(self, value: float) -> str:
        """A margin that was stated, with the digits that it has: .005, or 0.5."""
        return f"{100 * value:g}" if self.percent else _bare(f"{value:g}")

    @property
    def said(self) -> str:
        """The sentence that ends the caption of each table and figure of scores, "" for scores as they are."""
        return " Scores and differences are times 100." if self.percent else ""


def score(value: float, digits: int = 4) -> str:
    """A score: .4312, 1.0000, -.0123."""
    return _bare(f"{value:.{digits}f}")


def signed(value: float, digits: int = 4) -> str:
    """A difference, always with its sign: +.0129, -.0040; +.0000 also for what rounds to zero."""
    return Numbers(digits=digits).signed(value)


def fraction(value: float) -> str:
    """A probability, three digits: .25, .0312, .00781, 1; below .0001 so said."""
    if value < 0.0001:
        return "<.0001"
    return _bare(f"{value:.3g}")


def equals(value: float) -> str:
    """Return the text after the letter p: "= .0312", or "< .0001"."""
    text = fraction(value)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


def percent(alpha: float) -> str:
    """The level of an interval whose tests are made at `alpha`: 95 %."""
    return f"{100 * (1 - alpha):g} %"


def interval(low: float, high: float) -> str:
    """The ends of an interval of what is no score: [+.0010, +.0210]; n.a. where there is none."""
    return Numbers().interval(low, high)


def count(value: int | None) -> str:
    """A number of parameters: 512, 41.9 M, 1.28 B; "-" where it is not known."""
    return _scaled(value, {"B": 1e9, "M": 1e6, "K": 1e3})


def operations(value: float | None) -> str:
    """A number of floating-point operations: 6.21 T, 1.28 E; "-" where it is not known."""
    return _scaled(value, {"E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9})


def _scaled(value: float | None, sizes: dict[str, float]) -> str:
    if value is None:
        return "-"
    return next(
        (f"{value / size:.3g} {letter}" for letter, size in sizes.items() if value >= 0.9995 * size), f"{value:.0f}"
    )


def _bare(text: str) -> str:
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text
