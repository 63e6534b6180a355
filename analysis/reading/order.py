"""The order of designs: from conf, never from the scores. It fixes the sign of every difference."""

from typing import Any

from analysis.reading.rows import Design


def config_order(designs: dict[str, Design], order: dict[str, list[str]]) -> list[str]:
    """Return the labels: our own by (pooler, attn) as `order` lists them, then the others in file order.

    Further factors follow by value, numbers as numbers. A pooler or attention that `order` does not list follows
    those it does, by name.
    """
    poolers, attns = order.get("pooler", []), order.get("attn", [])

    def place(item: tuple[int, str]) -> tuple[Any, ...]:
        position, label = item
        d = designs[label]
        if not d.pooler:
            return (True, position)
        return (False, *_rank(d.pooler, poolers), *_rank(d.attn, attns), *map(_natural, d.factors.values()), position)

    return [label for _, label in sorted(enumerate(designs), key=place)]


def _rank(name: str, listed: list[str]) -> tuple[int, str]:
    return (listed.index(name), "") if name in listed else (len(listed), name)


def _natural(value: str) -> tuple[float, str]:
    """Numbers by size, then texts by letter."""
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value
