"""Types of arrays, and the rounding before every rank and test."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def rounded(values: Floats, decimals: int) -> Floats:
    """Return values rounded to `decimals`: 0.3 - 0.1 and 0.2 must tie, and float noise is no rank."""
    return np.asarray(np.round(values, decimals), dtype=np.float64)
