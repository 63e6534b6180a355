"""Types of arrays, the rounding before every rank and test, and blocks that bound the memory."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


DECIMALS = 12  # to which scores and differences are rounded before they are ranked


def rounded(values: Floats) -> Floats:
    """Return values rounded to `DECIMALS`: 0.3 - 0.1 and 0.2 must tie, and float noise is no rank."""
    return np.asarray(np.round(values, DECIMALS), dtype=np.float64)


def blocks(count: int, most: int) -> Iterator[slice]:
    """Yield the slices of `count` rows in blocks of `most`, one row at least."""
    for start in range(0, count, max(1, most)):
        yield slice(start, min(count, start + max(1, most)))


def length(block: slice) -> int:
    """Return the number of rows of one of these blocks."""
    return int(block.stop - block.start)
