"""What fits on a page: which designs are drawn where there are hundreds, and names of bearable length."""

from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from analysis.drawings.style import CHARACTER

if TYPE_CHECKING:
    import pandas as pd

    from analysis.analyse import Result

LONGEST = 40  # letters of a name in a figure


def highest(result: "Result", most: int) -> tuple[list[str], str]:
    """Return at most `most` designs, those of the highest mean over tasks, in config order; and a sentence, "" if all.

    The design that `against=` names is always among them.
    """
    designs = [str(label) for label in result.matrix.columns]
    if len(designs) <= most:
        return designs, ""
    kept = set(result.matrix.mean().nlargest(most).index)
    control = result.control
    if control and control not in kept:
        kept = {control, *result.matrix.mean().drop(control).nlargest(most - 1).index}
    also = f" and {control}" if control else ""
    said = f"Of {len(designs)} designs the {most} of the highest mean{also} are drawn."
    return [label for label in designs if label in kept], said


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


def block(result: "Result") -> "tuple[str, pd.DataFrame]":
    """Return the name of the last block of the pairs (all tasks together, or the only type) and its rows."""
    kind = str(result.pairs["type"].iloc[-1])
    return kind, result.pairs[result.pairs["type"] == kind]


def over(result: "Result", kind: str) -> str:
    """Return what a mean is over: `40 tasks`, or `8 STS tasks`."""
    n = len(result.types[kind]) if kind in result.types else len(result.matrix)
    return f"{n} {kind} tasks" if kind in result.types else f"{n} tasks"
