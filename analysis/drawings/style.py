"""The look of figures: sizes for print, marks that differ in shape as well as in colour.

Colours are those of Okabe and Ito (2008, "Color universal design"), without their yellow, which white paper swallows.
No meaning rests on colour alone: designs also differ in shape, significance in filling, signs in position.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

USUAL = "DejaVu Sans"  # comes with matplotlib, so every machine draws alike
NO_LETTERS = ("Last Resort",)  # has a box for every letter


def families(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the fonts to draw `texts` with: the usual one, then as few others as have what it lacks."""
    return (USUAL, *_others(absent(texts))[0])


def undrawn(texts: Iterable[str]) -> list[str]:
    """Return the letters of `texts` that no font of this machine has, sorted; a figure shows boxes for them."""
    return sorted(_others(absent(texts))[1])


def absent(texts: Iterable[str]) -> frozenset[str]:
    """Return the letters of `texts` that the usual font lacks."""
    letters = {letter for text in texts for letter in text if not letter.isascii()}
    if not letters:
        return frozenset()
    from matplotlib.font_manager import findfont

    return frozenset(letters - _held(findfont(USUAL), letters))


@lru_cache(maxsize=8)
def _others(letters: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the fonts taken, at each turn the one with the most letters still wanted, and what none of them has."""
    if not letters:
        return (), letters
    from matplotlib.font_manager import fontManager

    fonts = {f.name: f.fname for f in sorted(fontManager.ttflist, key=lambda f: (f.name, str(f.style), str(f.weight)))}
    chars = {name: _held(path, letters) for name, path in fonts.items() if not name.startswith((USUAL, *NO_LETTERS))}
    taken, wanted = [], set(letters)
    while chars and (best := max(sorted(chars), key=lambda name: len(chars[name] & wanted))) and chars[best] & wanted:
        taken.append(best)
        wanted -= chars[best]
    return tuple(taken), frozenset(wanted)


def _held(path: str, letters: Iterable[str]) -> frozenset[str]:
    """Return those of `letters` that a font's file has; none for a file that cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(path)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(letter for letter in letters if font.get_char_index(ord(letter)))


BLACK, BLUE, VERMILLION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY, GREY = "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B"
PALE = "#DDDDDD"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p")  # one more than colours would do: 12 designs
MOST_DESIGNS = len(SHAPES)
CHARACTER = 0.068  # inches, the mean width of a letter of 8 points
LINE = 0.19  # inches, the height of a line of a list

SETTINGS: dict[str, Any] = {
    "font.family": USUAL,
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
def house_style(fonts: Sequence[str] = (USUAL,)) -> Iterator[None]:
    """Draw and save within: matplotlib's own defaults and ours, whatever the user's matplotlibrc says.

    fonts: the first that has a letter draws it. A letter that none has is a box; the notes say so, once.
    """
    import matplotlib

    values: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    values.update(SETTINGS | {"font.family": list(fonts)})
    with matplotlib.rc_context(values), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
        yield
