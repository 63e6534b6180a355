"""The fewest tasks that carry a difference: without them the verdict on it turns."""

from collections.abc import Callable

import numpy as np

from analysis.statistics.arrays import Floats


def carriers(differences: Floats, side: float, turned: Callable[[list[int]], bool], most: int) -> list[int]:
    """Return the places of the fewest tasks without which a verdict is `turned`, [] where more than `most` are needed.

    differences: [n] of one pair; side: 1 or -1, the side that is ahead. Left out are the largest differences on that
    side, one after the other (Broderick, Giordano, Meager 2020 order data so). Without ties a signed-rank test has no
    larger one-sided p without other tasks, as many, since these leave every rank against that side where it is.
    """
    order = np.argsort(-differences * side, kind="stable").tolist()
    for count in range(1, min(most, len(order) - 1) + 1):
        if differences[order[count - 1]] * side <= 0:
            return []
        if turned(order[:count]):
            return order[:count]
    return []
