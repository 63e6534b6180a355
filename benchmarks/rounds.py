"""Things that are compared run in turn in one process; what is reported is the ratio of a round, and its spread."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

Contestant = Callable[[Any], float]  # does the work of an item and returns how much that was: tokens, texts, FLOPs
Rates = dict[str, list[float]]  # work a second, by contestant and round


@dataclass(frozen=True)
class Spread:
    """Median, tenth and ninetieth percentile over rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"**{self.median:.2f}** ({self.low:.2f} to {self.high:.2f})"


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of `values`."""
    low, median, high = np.percentile(values, [10, 50, 90])
    return Spread(float(median), float(low), float(high))


def in_turn(contestants: Mapping[str, Contestant], items: Sequence[Any], warm_up: Any) -> Rates:
    """Give every item to every contestant, each round starting with another one; `warm_up` goes first, untimed."""
    for run in contestants.values():
        run(warm_up)
    rates: Rates = {name: [] for name in contestants}
    for number, item in enumerate(items):
        for name, rate in one_round(contestants, item, number).items():
            rates[name].append(rate)
    return rates


def one_round(
    contestants: Mapping[str, Contestant],
    item: Any,
    number: int,
    around: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> dict[str, float]:
    """Give `item` to every contestant, the one of place `number` first; what is `around` a name's turn is not timed."""
    names = list(contestants)
    shift = number % len(names)
    rates = {}
    for name in names[shift:] + names[:shift]:
        with around(name):
            gc.collect()
            rates[name] = _rate(contestants[name], item)
    return rates


def _rate(run: Contestant, item: Any) -> float:
    start = time.perf_counter()
    return run(item) / (time.perf_counter() - start)


def ratio(rates: Rates, over: str, under: str) -> Spread:
    """Speed of `over` as a multiple of that of `under`, round by round."""
    return spread([a / b for a, b in zip(rates[over], rates[under], strict=True)])


def quickest(candidates: Mapping[str, Contestant], item: Any, again: int = 2) -> str:
    """The name of the contestant that is quickest on `item`, the best of `again` after a warm-up each.

    How a peer with several settings is measured at its best.
    """
    best: dict[str, float] = {}
    for name, run in candidates.items():
        run(item)
        best[name] = max(_rate(run, item) for _ in range(again))
    return max(best, key=best.__getitem__)
