"""What is corrected together: the tests of one task type, or of a whole table, and what could pass at all."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.settings import Settings
from analysis.statistics.correction import CORRECTIONS, passes

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

ALWAYS = ("holm", "bh")  # both stand in the files, whichever decides


def corrected(tests: "pd.DataFrame", settings: Settings) -> "pd.DataFrame":
    """Return the tests (columns type, p, p_min; one row a test) with the columns of the correction.

    `family_size`; `p_holm` and `p_bh`; `p_adjusted` and `p_min_adjusted` by the correction that `settings` names,
    each over the family; `significant`; `reachable`: yes, uncorrected (p could pass, the corrected p could not), or no.
    The corrected values of Holm and of Benjamini-Hochberg only grow with any p of the family, so no data with so many
    tasks can go below the corrected `p_min`.
    """
    kinds = tests["type"].to_numpy()
    families = kinds if settings.family == "type" else np.full(len(tests), "table")
    groups = [np.flatnonzero(families == name) for name in dict.fromkeys(families)]
    p, p_min = tests["p"].to_numpy(dtype=np.float64), tests["p_min"].to_numpy(dtype=np.float64)
    adjusted, floor = (_within(values, groups, settings.correction) for values in (p, p_min))
    sizes = np.empty(len(tests), dtype=int)
    for rows in groups:
        sizes[rows] = len(rows)
    raw_only = np.where(passes(p_min, settings.alpha), "uncorrected", "no")
    return tests.assign(
        family_size=sizes,
        **{f"p_{name}": _within(p, groups, name) for name in ALWAYS},
        p_adjusted=adjusted,
        p_min_adjusted=floor,
        significant=passes(adjusted, settings.alpha),
        reachable=np.where(passes(floor, settings.alpha), "yes", raw_only),
    )


def _within(p: Floats, groups: list[NDArray[np.intp]], correction: str) -> Floats:
    """Correct each family by itself. groups: the positions of each."""
    adjusted = np.empty_like(p)
    for rows in groups:
        adjusted[rows] = CORRECTIONS[correction](p[rows])
    return adjusted
