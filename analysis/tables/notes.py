"""What a reader must know beside the tables: seeds, the test, and what the number of tasks allows."""

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from analysis.grids.formats import fraction, signed
from analysis.names import listed
from analysis.pairs import BETWEEN
from analysis.settings import Settings
from analysis.statistics.correction import correction_name
from analysis.tables.letters import letter_notes

if TYPE_CHECKING:
    import pandas as pd

ZEROS = {
    "wilcox": "differences of zero dropped before ranking",
    "pratt": "differences of zero ranked, then dropped",
    "zsplit": "differences of zero ranked, half of their ranks to either side",
}


OPPOSED_SHOWN = 3  # rows in which mean and test disagree that a note spells out


def all_notes(frame: "pd.DataFrame", designs: list[str], pairs: "pd.DataFrame", settings: Settings) -> list[str]:
    """Return the notes, one sentence or two each."""
    names = {str(name) for column in ("design", "task", "type") for name in frame[column].unique()}
    return [
        *seed_notes(frame, designs), rounding(settings), *attainable(pairs, settings), *opposed(pairs),
        *letter_notes(names, settings.figures),
    ]  # fmt: skip


def seed_notes(frame: "pd.DataFrame", designs: list[str]) -> list[str]:
    """Say which seeds each score is a mean of; designs with other seeds are named."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for design in designs:
        seeds = set(frame.loc[frame["design"] == design, "seed"]) - {""}
        groups[tuple(sorted(seeds, key=lambda s: (len(s), s)))].append(design)
    if set(groups) == {()}:
        return []
    if len(groups) == 1:
        shared = next(iter(groups))
        what = "one seed" if len(shared) == 1 else f"{len(shared)} seeds, of which each score is the mean"
        return [f"Every design has {what}: {', '.join(shared)}."]
    parts = [f"{listed(names, 4)}: {', '.join(seeds) or 'none known'}" for seeds, names in groups.items()]
    return [f"The designs have different seeds ({'; '.join(parts)}); each score is the mean over a design's own seeds."]


def rounding(settings: Settings) -> str:
    """Say at which decimal two differences tie."""
    return f"Differences were rounded to {settings.decimals} decimals before ranking, so float noise makes no rank."


def attainable(pairs: "pd.DataFrame", settings: Settings) -> list[str]:
    """Say, for each type, the smallest p that its number of tasks allows, and whether alpha can be reached."""
    parts, closed, after = [], [], []
    for kind, rows in pairs.groupby("type", sort=False):
        lowest = rows.iloc[int(rows["p_min_adjusted"].to_numpy().argmin())]
        corrected = "" if settings.correction == "none" else f" ({fraction(lowest['p_min_adjusted'])})"
        parts.append(f"{kind} n = {lowest['n_pairs']}: {fraction(lowest['p_min'])}{corrected}")
        if (rows["reachable"] == "no").all():
            closed.append(_closed(str(kind), lowest, settings))
        elif (rows["reachable"] != "yes").all():
            after.append(str(kind))
    name = "" if settings.correction == "none" else f" (in brackets after {correction_name(settings.correction)})"
    notes = [f"Smallest two-sided p that the number of tasks allows{name}: {'; '.join(parts)}."]
    alpha = fraction(settings.alpha)
    notes += closed
    if after:
        closed_after = f"No difference on {', '.join(after)} can reach {alpha} after the correction, only before it."
        notes.append(f"{closed_after} {_mend(pairs, settings)}")
    return notes


def opposed(pairs: "pd.DataFrame") -> list[str]:
    """Name the rows in which the mean has the sign against which the test speaks, those with a star first."""
    rows = pairs[pairs["mean_tipped_by"] != ""]
    if rows.empty:
        return []
    starred = int(rows["significant"].sum())
    count = f"{len(rows):,} of {len(pairs):,} rows" + (f", {starred:,} of them with a star" if starred else "")
    few = rows.sort_values(["significant", "p"], ascending=[False, True], kind="stable").head(OPPOSED_SHOWN)
    parts = [
        f"{row['type']}, {row['second']} - {row['first']}: mean {signed(row['difference'])}, Hodges-Lehmann"
        f" {signed(row['hodges_lehmann'])}; the mean's sign is due to {listed(row['mean_tipped_by'].split(BETWEEN), 3)}"
        for row in few.to_dict("records")
    ]
    rest = " pairs.csv names the tasks of all (mean_tipped_by)." if len(rows) > len(few) else ""
    return [
        f"The mean and the test point opposite ways in {count}; star, sign and interval are the test's."
        f" {'. '.join(parts)}.{rest}"
    ]


def _closed(kind: str, lowest: "pd.Series", settings: Settings) -> str:
    """Say that no result on this type can reach alpha, and how many tasks could."""
    if lowest["n_zero"] == lowest["n_pairs"]:
        return (
            f"{kind} n = {lowest['n_pairs']}: no two designs compared differ on any task, so there is nothing to test."
        )
    differ = f", of which at most {lowest['n_pairs'] - lowest['n_zero']} differ" if lowest["n_zero"] else ""
    alpha, needed = fraction(settings.alpha), tasks_that_allow(settings.alpha)
    family = tasks_that_allow(settings.alpha, int(lowest["family_size"]))
    after = "" if settings.correction != "holm" or family == needed else f" ({family} after the correction)"
    return (
        f"Too few tasks: {kind} n = {lowest['n_pairs']}{differ}: the smallest two-sided p is"
        f" {fraction(lowest['p_min'])}, so {alpha} cannot be reached whatever the scores; at least {needed} tasks"
        f" are needed{after}."
    )


def tasks_that_allow(alpha: float, family: int = 1) -> int:
    """Return the fewest tasks at which any result can pass: Holm's first step asks for family x 2 / 2^n <= alpha."""
    return math.ceil(1 + math.log2(family / alpha) - 1e-9)


def _mend(pairs: "pd.DataFrame", settings: Settings) -> str:
    """Say how many tasks the family would need: Holm's first step asks for family x 2 / 2^n <= alpha."""
    if settings.correction != "holm":
        return "More tasks a type, or a smaller family, would mend it."
    family = int(pairs["family_size"].max())
    needed = tasks_that_allow(settings.alpha, family)
    other = "" if settings.against else ", or fewer pairs: against=<design>"
    return f"A family of {family} needs {needed} tasks a type{other}."
