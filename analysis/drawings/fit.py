"""Names of bearable length, and the room that labels take."""

from collections.abc import Iterable
from os.path import commonprefix
from unicodedata import east_asian_width

from analysis.drawings.style import CHARACTER

LONGEST = 40  # letters of a name in a figure


def short_names(names: Iterable[str], longest: int = LONGEST) -> dict[str, str]:
    """Return name -> at most `longest` letters of it, its middle left out; two names never become one.

    A beginning that all the long names share is left out first, since it tells nothing apart.
    """
    every = list(names)
    far = [name for name in every if len(name) > longest]
    shared = len(commonprefix(far)) if len(far) > 1 else 0  # noqa: RUF071 (of letters, not of folders)
    short: dict[str, str] = {}
    for name in every:
        telling = f"…{name[shared:]}" if name in far and shared > 8 else name
        text, k = _cut(telling, longest), 1
        while text in short.values():
            k += 1
            text = f"{_cut(telling, longest - len(str(k)) - 1)}~{k}"
        short[name] = text
    return short


def _cut(name: str, longest: int) -> str:
    name = " ".join(name.split())
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def inches(names: Iterable[str]) -> float:
    """Return the width of the widest of some labels; Chinese, Japanese and Korean letters are twice as wide."""
    return CHARACTER * max((sum(1 + (east_asian_width(c) in "WF") for c in name) for name in names), default=0)
