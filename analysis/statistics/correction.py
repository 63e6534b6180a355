"""Corrections for many tests. A new one is a function of p and its `Family`, and a line in `CORRECTIONS`."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import numpy as np

from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.westfall_young import smallest, westfall_young


@dataclass(frozen=True)
class Family:
    """Facts of m tests that are corrected together, beside their p.

    `blocks`: how many groups of them (task types) are all pairs of the same designs; `signed_ranks` [m, n tasks]: as
    `wilcoxon.signed_ranks` gives them, needed by Westfall and Young alone.
    """

    blocks: int = 1
    signed_ranks: Ints = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))


def holm(p: Floats) -> Floats:
    """Return Holm's step-down adjusted p-values (Holm 1979), in the order given.

    The k-th smallest of m is multiplied by m - k + 1; a running maximum keeps the order; at most 1.
    """
    return _stepped_down(p, np.arange(len(p), 0, -1))


def shaffer(p: Floats, blocks: int = 1) -> Floats:
    """Return the adjusted p-values of Shaffer's static step-down procedure (1986, S2) for all pairs of k designs.

    Equal designs form groups, so of the pairs only some numbers can be equal together (k = 4: 0, 1, 2, 3 or 6). The
    j-th smallest p is multiplied by the largest such number up to m - j + 1, where Holm takes m - j + 1 itself.
    `blocks`: groups of all pairs of as many designs each; what holds in one then bounds nothing in another.
    """
    pairs = len(p) // blocks
    k = round((1 + math.sqrt(1 + 8 * pairs)) / 2)
    numbers = [1]  # of 0, 1, 2, ... designs: bit s is set where s pairs can be equal together
    for designs in range(1, k + 1):
        sizes = range(1, designs + 1)
        numbers.append(_union(numbers[designs - size] << math.comb(size, 2) for size in sizes))
    possible = 1
    for _ in range(blocks):
        possible = _union(possible << s for s in range(pairs + 1) if numbers[k] >> s & 1)
    steps = [(possible & ((2 << left) - 1)).bit_length() - 1 for left in range(len(p), 0, -1)]
    return _stepped_down(p, np.array(steps))


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks)


def _stepped_down(p: Floats, factors: Ints) -> Floats:
    """Multiply the ascending p by these factors; a running maximum keeps the order; at most 1."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted


def bh(p: Floats) -> Floats:
    """Return the Benjamini-Hochberg adjusted p-values (1995), in the order given: the false discovery rate."""
    from scipy.stats import false_discovery_control  # takes a second, and the audit needs none of it

    return np.asarray(false_discovery_control(p, method="bh"), dtype=np.float64)


Correction = Callable[[Floats, Family], Floats]
CORRECTIONS: dict[str, Correction] = {
    "holm": lambda p, _: holm(p),
    "bh": lambda p, _: bh(p),
    "shaffer": lambda p, family: shaffer(p, family.blocks),
    "westfall_young": lambda p, family: westfall_young(p, family.signed_ranks),
    "none": lambda p, _: p.copy(),
}
NAMES = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": ""}  # as captions and notes call them
NAMES |= {"shaffer": "Shaffer", "westfall_young": "Westfall-Young"}
RESAMPLED = "westfall_young"  # needs the signed ranks
# What bounds the adjusted p from below, given the smallest p, where it is not the correction of these.
FLOORS: dict[str, Correction] = {RESAMPLED: lambda p, family: smallest(p, family.signed_ranks)}
FIRST_STEP = ("holm", "shaffer")  # the smallest p is multiplied by the size of the family


def correction_name(correction: str) -> str:
    """Return the name of a correction as a text prints it; "" for none."""
    return NAMES.get(correction, correction.capitalize())


def of_seeds(correction: str) -> str:
    """Return the correction of p over tasks and seeds: the same, but Holm's where there is nothing to resample."""
    return "holm" if correction == RESAMPLED else correction


def passes(p: Floats, alpha: float) -> Bools:
    """Tell whether p <= alpha, forgiving float noise: 10 x .005 is .05."""
    return p <= alpha * (1 + 1e-9)
