"""The interval of the mean difference that the forest plots draw: a bootstrap over tasks."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
RESAMPLES = 9_999
SEED = 0
FEWEST = 6  # tasks: fewer have too few distinct resamples


def interval(matrix: "pd.DataFrame", rows: "pd.DataFrame", tasks: list[str]) -> tuple[Floats, Floats]:
    """Return (low, high) of each pair's mean difference over `tasks`; nan with fewer than six tasks.

    matrix: tasks x designs; rows: some rows of the table of pairs, all of one block. The columns `boot_low` and
    `boot_high` of that table are taken where it has them; it leaves them empty where there are hundreds of pairs.
    """
    columns = ("boot_low", "boot_high")
    if set(columns) <= set(rows.columns) and rows[columns[0]].notna().any():
        low, high = (rows[column].to_numpy(dtype=np.float64) for column in columns)
        return low, high
    values = matrix.loc[tasks]
    second, first = (values[list(rows[side])].to_numpy(dtype=np.float64) for side in ("second", "first"))
    return percentile_interval(second - first)


def percentile_interval(differences: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return (low, high), each [P], for differences [n tasks, P pairs]: Efron's percentile interval.

    All pairs share the resampled tasks. Source: Efron and Tibshirani 1993, section 13.3.
    """
    n, count = differences.shape
    if n < FEWEST:
        return np.full(count, np.nan), np.full(count, np.nan)
    weights = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
    tail = (1 - level) / 2
    low, high = np.quantile(weights @ differences, [tail, 1 - tail], axis=0)
    return low, high


def interval_name(rows: "pd.DataFrame", alpha: float) -> str:
    """Return what the lines are, for the caption."""
    of_the_table = "boot_low" in rows.columns and bool(rows["boot_low"].notna().any())
    level, kind = (f"{100 * (1 - alpha):g} %", "bootstrap-t") if of_the_table else ("95 %", "percentile bootstrap")
    how = f"{RESAMPLES:,} resamples, seed {SEED}; none below {FEWEST} tasks"
    return f"{level} {kind} interval of the mean over tasks ({how})"
