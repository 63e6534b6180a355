"""Every pair of designs on every task type: difference, exact test, correction, and what could be reached at all."""

from typing import TYPE_CHECKING

import numpy as np

from analysis.family import corrected
from analysis.settings import Settings
from analysis.statistics.cross_checks import cross_checks
from analysis.statistics.wilcoxon import signed_rank

if TYPE_CHECKING:
    import pandas as pd

ALL = "All"


def compare_pairs(
    matrix: "pd.DataFrame", blocks: dict[str, list[str]], settings: Settings, control: str = ""
) -> "pd.DataFrame":
    """Return one row a (type, pair); with a `control` only the pairs that hold it.

    matrix: tasks x designs, designs in config order; blocks: type -> its tasks. `difference` is the mean over tasks
    of second minus first; the columns of the test, of `cross_checks` and of `analysis.family.corrected` follow.
    Intervals have the level 1 - alpha.
    """
    import pandas as pd

    names = np.array(matrix.columns, dtype=object)
    first, second = np.triu_indices(len(names), k=1)
    if control:
        held = (names[first] == control) | (names[second] == control)
        first, second = first[held], second[held]
    tables = []
    for kind, tasks in blocks.items():
        values = matrix.loc[tasks].to_numpy(dtype=float).T  # designs x tasks
        differences = values[second] - values[first]
        test = signed_rank(differences, settings.zeros, settings.decimals)
        means = values.mean(axis=1)
        columns = {"type": kind, "first": names[first], "second": names[second]}
        columns |= {"mean_first": means[first], "mean_second": means[second]}
        columns |= {"difference": differences.mean(axis=1), **vars(test)}
        columns |= cross_checks(differences, settings.decimals, 1 - settings.alpha)
        tables.append(pd.DataFrame(columns))
    return corrected(pd.concat(tables, ignore_index=True), settings)
