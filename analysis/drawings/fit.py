"""Names of bearable length, and the room that labels take."""

from collections.abc import Iterable
from itertools import takewhile
from unicodedata import east_asian_width

from analysis.drawings.style import CHARACTER

LONGEST = 40  # letters of a name in a figure


def short_names(names: Iterable[str], longest: int = LONGEST) -> dict[str, str]:
    """Return name -> at most `longest` letters of it, its middle left out; two names never become one.

    A beginning that all the long names share is left out first, since it tells nothing apart.
    """
    every = list(names)
    far = [name for name in every if len(name) > longest]
    shared = _shared(far) if len(far) > 1 else 0
    short: dict[str, str] = {}
    taken: set[str] = set()
    for name in every:
        own = f"…{name[shared:]}" if name in far and shared > 8 else name
        text, k = _cut(own, longest), 1
        while text in taken:
            k += 1
            text = f"{_cut(own, longest - len(str(k)) - 1)}~{k}"
        taken.add(text)
        short[name] = text
    return short


def _shared(names: list[str]) -> int:
    """Return how many letters all names begin with alike."""
    same = (len(set(letters)) == 1 for letters in zip(*names, strict=False))
    return sum(1 for _ in takewhile(bool, same))


def _cut(name: str, longest: int) -> str:
    name = " ".join(name.split())
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def inches(names: Iterable[str]) -> float:
    """Return the width of the widest of some labels; Chinese, Japanese and Korean letters are twice as wide."""
    return CHARACTER * max((sum(1 + (east_asian_width(c) in "WF") for c in name) for name in names), default=0)
