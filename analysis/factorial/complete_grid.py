"""The largest complete crossing among designs that need not be one."""

from collections.abc import Iterator
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

SEARCHED = 20_000  # choices of levels that are looked at; beyond them only a crossing of all levels is found

Levels = dict[str, list[str]]


def complete_grid(table: "pd.DataFrame", prefer: Literal["factors", "designs"]) -> Levels | None:
    """Return factor -> levels of the largest complete crossing, None where no two factors are crossed.

    table: designs x factors, texts, no two rows alike; "" where a factor does not apply, which is no level beside
    others. A factor that keeps one level is held fixed there. `prefer`: first as many factors with two levels or more
    as possible and then as many designs, or the other way round; of equals the one with the levels that come first.
    """
    every = {name: list(dict.fromkeys(table[name])) for name in table.columns}
    if prod(map(len, every.values())) == len(table) and _crossed(every) >= 2 and _applies(every):
        return every
    names = sorted(every, key=lambda name: len(every[name]))  # the longest last: its levels follow from the others
    if not names or prod(2 ** len(every[name]) - 1 for name in names[:-1]) > SEARCHED:
        return None
    cells = set(table[names].itertuples(index=False, name=None))
    best: Levels | None = None
    for chosen in product(*(_subsets(every[name]) for name in names[:-1])):
        inner = list(product(*chosen))
        full = [level for level in every[names[-1]] if all((*cell, level) in cells for cell in inner)]
        for last in ([level for level in full if level], [level for level in full if not level]):
            levels = dict(zip(names, [*map(list, chosen), last], strict=True))
            if last and _crossed(levels) >= 2 and (best is None or _size(levels, prefer) > _size(best, prefer)):
                best = levels
    return best and {name: best[name] for name in every}


def _subsets(levels: list[str]) -> Iterator[tuple[str, ...]]:
    """Every choice of levels, the larger and the earlier first; "" only alone."""
    real = [level for level in levels if level]
    for size in range(len(real), 0, -1):
        yield from combinations(real, size)
    if "" in levels:
        yield ("",)


def _crossed(levels: Levels) -> int:
    return sum(len(own) > 1 for own in levels.values())


def _applies(levels: Levels) -> bool:
    return not any("" in own and len(own) > 1 for own in levels.values())


def _size(levels: Levels, prefer: str) -> tuple[int, int]:
    size = (_crossed(levels), prod(map(len, levels.values())))
    return size if prefer == "factors" else size[::-1]
