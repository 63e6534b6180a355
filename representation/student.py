"""Student's t interval of a mean."""

import numpy as np
from numpy.typing import NDArray


def student(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return the ends of the interval of the mean of values [n] at `level`; nan with fewer than two values."""
    from scipy.stats import t

    n = len(values)
    if n < 2:
        return np.nan, np.nan
    half = float(t.ppf((1 + level) / 2, n - 1)) * float(values.std(ddof=1)) / n**0.5
    return float(values.mean()) - half, float(values.mean()) + half
