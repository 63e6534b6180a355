"""Pairs that one reading ranks wrongly and another does not, as MoEE counts them (arXiv 2410.10814, figure 2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shares:
    """Of the pairs that at least one of two readings fails: shares, which add up to one.

    `independent`: what `one_alone + other_alone` would be if each failed as often as it does, whatever the other does.
    """

    pairs: int
    one_alone: float
    other_alone: float
    both: float
    independent: float


def deviation(similarity: Floats, truth: Floats) -> Floats:
    """[n] how far a pair's rank by similarity is from its true rank, as a share of all pairs; ties share their mean."""
    found: Floats = np.abs(rankdata(similarity) - rankdata(truth)) / len(truth)
    return found


def shares(one: Floats, other: Floats, threshold: float) -> Shares:
    """Count failures, which are deviations [n] above `threshold`; NaN where neither reading fails any pair."""
    a, b = one > threshold, other > threshold
    either = int((a | b).sum())
    p, q = float(a.mean()), float(b.mean())
    union = p + q - p * q
    return Shares(
        either,
        one_alone=_share(a & ~b, either),
        other_alone=_share(b & ~a, either),
        both=_share(a & b, either),
        independent=(p + q - 2 * p * q) / union if union else float("nan"),
    )


def _share(chosen: NDArray[np.bool_], of: int) -> float:
    return float(chosen.sum() / of) if of else float("nan")
