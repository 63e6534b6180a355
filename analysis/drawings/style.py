"""The look of figures: sizes for print, marks that differ in shape as well as in colour.

Colours are those of Okabe and Ito (2008, "Color universal design"), without their yellow, which white paper swallows.
No meaning rests on colour alone: designs also differ in shape, significance in filling, signs in position.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

BLACK, BLUE, VERMILLION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY, GREY = "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B"
PALE = "#DDDDDD"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p")  # one more than colours would do: 12 designs
MOST_DESIGNS = len(SHAPES)
CHARACTER = 0.068  # inches, the mean width of a letter of 8 points
LINE = 0.19  # inches, the height of a line of a list

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine draws alike
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "text.parse_math": False,  # a name may hold "$"
    "pdf.fonttype": 42,  # TrueType, embedded: publishers refuse Type 3
    "svg.fonttype": "path",
    "svg.hashsalt": "analysis",  # the same result gives the same bytes
    "savefig.dpi": 200,
}


class Mark(NamedTuple):
    """The shape and colour of one design."""

    shape: str
    colour: str


def mark(k: int) -> Mark:
    """Return the mark of the k-th design; shapes repeat after `MOST_DESIGNS`, which no figure exceeds."""
    return Mark(SHAPES[k % len(SHAPES)], COLOURS[k % len(COLOURS)])


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save within: matplotlib's own defaults and ours, whatever the user's matplotlibrc says.

    A letter that the font lacks is a box.
    """
    import matplotlib

    values: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    with matplotlib.rc_context(values | SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
        yield
