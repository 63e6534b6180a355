"""What is corrected together: the tests of one task type, or of a whole table, and what could pass at all."""

from typing import TYPE_CHECKING

import numpy as np

from analysis.correction import CORRECTIONS, passes
from analysis.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


def corrected(tests: "pd.DataFrame", settings: Settings) -> "pd.DataFrame":
    """Return the tests (columns type, p, p_min; one row a test) with the columns of the correction.

    `family_size`; `p_adjusted` and `p_min_adjusted`, each corrected over the family; `significant`; `reachable`: yes,
    uncorrected (p could pass, the corrected p could not), or no. Holm's result only grows with any p, so no data
    with so many tasks can go below the corrected `p_min`.
    """
    correct = CORRECTIONS[settings.correction]
    tests = tests.copy()
    family = tests["type"] if settings.family == "type" else tests["type"].map(lambda _: "table")
    tests["family_size"] = family.map(family.value_counts()).astype(int)
    for column in ("p", "p_min"):
        adjusted = [
            correct(tests.loc[rows, column].to_numpy()) for rows in family.groupby(family, sort=False).groups.values()
        ]
        order = np.concatenate([rows.to_numpy() for rows in family.groupby(family, sort=False).groups.values()])
        tests.loc[order, f"{column}_adjusted"] = np.concatenate(adjusted)
    alpha = settings.alpha
    tests["significant"] = passes(tests["p_adjusted"].to_numpy(), alpha)
    raw_only = np.where(passes(tests["p_min"].to_numpy(), alpha), "uncorrected", "no")
    tests["reachable"] = np.where(passes(tests["p_min_adjusted"].to_numpy(), alpha), "yes", raw_only)
    return tests
