"""The interval of the mean difference that the forest plots draw: Student's, as in the table of pairs."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


def interval(rows: "pd.DataFrame") -> tuple[Floats, Floats]:
    """Return (low, high) of each pair's mean difference over its tasks, level 1 - alpha; nan with one task.

    rows: some rows of the table of pairs, all of one block.
    """
    low, high = (rows[column].to_numpy(dtype=np.float64) for column in ("mean_low", "mean_high"))
    return low, high


def interval_name(alpha: float) -> str:
    """Return what the lines are, for the caption."""
    return f"{100 * (1 - alpha):g} % Student's t interval of the mean over tasks"
