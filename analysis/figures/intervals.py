"""The interval of the mean difference that the forest plots draw: the bootstrap-t of the table of pairs."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.bootstrap_mean import FEWEST, RESAMPLES, bootstrap_mean
from analysis.statistics.resample import SEED

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


def interval(matrix: "pd.DataFrame", rows: "pd.DataFrame", tasks: list[str], alpha: float) -> tuple[Floats, Floats]:
    """Return (low, high) of each pair's mean difference over `tasks`, level 1 - alpha; nan with fewer than six tasks.

    matrix: tasks x designs; rows: some rows of the table of pairs, all of one block. The columns `boot_low` and
    `boot_high` of that table are taken; where it leaves them empty, with hundreds of pairs, the rows drawn have the
    same interval worked out here.
    """
    low, high = (rows[column].to_numpy(dtype=np.float64) for column in ("boot_low", "boot_high"))
    if not np.isnan(low).all():
        return low, high
    values = matrix.loc[tasks]
    second, first = (values[list(rows[side])].to_numpy(dtype=np.float64) for side in ("second", "first"))
    return bootstrap_mean((second - first).T, 1 - alpha)


def interval_name(alpha: float) -> str:
    """Return what the lines are, for the caption."""
    how = f"{RESAMPLES:,} resamples, seed {SEED}; none below {FEWEST} tasks"
    return f"{100 * (1 - alpha):g} % bootstrap-t interval of the mean over tasks ({how})"
