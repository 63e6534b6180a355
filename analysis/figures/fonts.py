"""Fonts for names whose letters DejaVu Sans lacks (Chinese, Japanese, Korean, ...): an installed font that has them."""

from collections.abc import Iterable
from functools import lru_cache

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

    return frozenset(letters - _held(findfont(USUAL), frozenset(letters)))


@lru_cache(maxsize=8)
def _others(letters: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the fonts taken, at each turn the one with the most letters still wanted, and what none of them has."""
    if not letters:
        return (), letters
    from matplotlib.font_manager import fontManager

    fonts = {f.name: f.fname for f in sorted(fontManager.ttflist, key=lambda f: (f.name, str(f.style), str(f.weight)))}
    held = {name: _held(path, letters) for name, path in fonts.items() if not name.startswith((USUAL, *NO_LETTERS))}
    taken, wanted = [], set(letters)
    while held and (best := max(sorted(held), key=lambda name: len(held[name] & wanted))) and held[best] & wanted:
        taken.append(best)
        wanted -= held[best]
    return tuple(taken), frozenset(wanted)


def _held(path: str, letters: frozenset[str]) -> frozenset[str]:
    """Return those of `letters` that a font's file has; none for a file that cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(path)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(letter for letter in letters if font.get_char_index(ord(letter)))
