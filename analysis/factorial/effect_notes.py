"""What a reader must know beside the effects: how p was counted and what the number of tasks allows."""

import math
from typing import TYPE_CHECKING

from analysis.grids.formats import fraction
from analysis.settings import Settings
from analysis.statistics.correction import correction_name
from analysis.statistics.sign_flip import EXACT_UP_TO, SEED

if TYPE_CHECKING:
    import pandas as pd


def effect_notes(tables: list["pd.DataFrame"], settings: Settings) -> list[str]:
    """Return the notes on the tests of all crossings together, none where there are no effects."""
    import pandas as pd

    if not tables:
        return []
    tests = pd.concat(tables)
    notes = [_counted(tests), _attainable(tests, settings)]
    single = list(dict.fromkeys(tests.loc[tests["n_tasks"] < 2, "type"]))
    if single:
        notes.append(f"Effects: {', '.join(single)} has one task, so there is no F and p is 1.")
    return notes


def _counted(tests: "pd.DataFrame") -> str:
    exact = f"all sign flips are counted (exact) with up to {EXACT_UP_TO} tasks"
    drawn = list(dict.fromkeys(tests.loc[~tests["exact"].astype(bool), "type"]))
    if not drawn:
        return f"Effects: {exact}."
    p = "p = (b + 1) / (m + 1)"
    flips = tests.loc[~tests["exact"].astype(bool), "flips"]
    few, many = int(flips.min()), int(flips.max())
    how_many = f"{many:,}" if few == many else f"{few:,} to {many:,}"
    return f"Effects: {exact}; {', '.join(drawn)}: {how_many} random ones (seed {SEED}), {p}."


def _attainable(tests: "pd.DataFrame", settings: Settings) -> str:
    parts = []
    for kind, rows in tests.groupby("type", sort=False):
        lowest = rows.iloc[int(rows["p_min_adjusted"].to_numpy().argmin())]
        after = "" if settings.correction == "none" else f" ({fraction(lowest['p_min_adjusted'])})"
        parts.append(f"{kind} {fraction(lowest['p_min'])}{after}")
    name = "" if settings.correction == "none" else f" (in brackets after {correction_name(settings.correction)})"
    note = f"Smallest p of an effect that the number of tasks allows{name}: {'; '.join(parts)}."
    return f"{note} {_needed(tests, settings)}" if (tests["reachable"] == "uncorrected").any() else note


def _needed(tests: "pd.DataFrame", settings: Settings) -> str:
    """Holm's first step asks for family x 2 / 2^n <= alpha."""
    if settings.correction != "holm":
        return "More tasks a type, or fewer effects, would mend it."
    family = int(tests["family_size"].max())
    needed = math.ceil(1 + math.log2(family / settings.alpha) - 1e-9)
    return f"A family of {family} effects needs {needed} tasks a type to reach {fraction(settings.alpha)}."
