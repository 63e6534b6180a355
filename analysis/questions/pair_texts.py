"""Sentences on a table of pairs: the test, the zeros, the correction and its family, and what the tasks allow."""

import math
from collections import defaultdict

import pandas as pd

from analysis.grids.formats import fraction
from analysis.names import by_number, listed
from analysis.questions.question import Material
from analysis.questions.tables import after_correction, pair_name
from analysis.settings import Settings
from analysis.statistics.correction import NAMES
from analysis.statistics.seeds import FEWEST_SEEDS
from analysis.statistics.wilcoxon import EXACT_UP_TO

ZEROS = {
    "wilcox": "differences of zero dropped before ranking",
    "pratt": "differences of zero ranked, then dropped",
    "zsplit": "differences of zero ranked, half of their ranks to either side",
}


def signed_rank_text(pairs: pd.DataFrame, settings: Settings) -> str:
    """Return "two-sided exact Wilcoxon signed-rank test; the pairing unit is the task, ..."."""
    large = bool((pairs["n_pairs"] > EXACT_UP_TO).any())
    how = f" (more than {EXACT_UP_TO:,} tasks: by the normal curve)" if large else ""
    return f"two-sided exact Wilcoxon signed-rank test{how}; the pairing unit is the task, {ZEROS[settings.zeros]}"


def correction_text(tests: pd.DataFrame, settings: Settings, which: str = "") -> str:
    """Return "Holm correction over the pairs of one task type (family of 10)", or that there is none."""
    if settings.correction == "none":
        return "no correction for many tests"
    return f"{NAMES[settings.correction]} correction over {family_text(tests, settings, which)}"


def family_text(tests: pd.DataFrame, settings: Settings, which: str = "") -> str:
    """Return "the pairs of one task type (family of 10)". which: what is tested, where it is not the pairs."""
    which = which or (f"pairs with {settings.against}" if settings.against else "pairs")
    what = f"the {which} of one task type" if settings.family == "type" else f"all {which} and task types of the table"
    return f"{what} (family of {int(tests['family_size'].max())})"


def unreachable_text(pairs: pd.DataFrame, settings: Settings) -> str:
    """Return what n.a. means: "so few tasks that .05 cannot be reached after the correction, whatever the scores"."""
    after = " after the correction" if (pairs["reachable"] == "uncorrected").any() else ""
    return f"so few tasks that {fraction(settings.alpha)} cannot be reached{after}, whatever the scores"


def pair_notes(material: Material) -> list[str]:
    """Return what a reader must know beside the tables: seeds, rounding, and what the number of tasks allows."""
    pairs, settings = material.pairs, material.settings
    rounding = f"Differences were rounded to {settings.decimals} decimals before ranking, so float noise makes no rank."
    seeds = seed_notes(material.frame, list(material.designs))
    return [*seeds, *_unpaired(pairs), rounding, *attainable(pairs, settings), *_opposed(pairs)]


def _unpaired(pairs: pd.DataFrame) -> list[str]:
    """Name the pairs that share too few seeds to be paired by them."""
    apart = pairs[~pairs["seeds_paired"]].drop_duplicates(["first", "second"])
    names = listed(map(pair_name, apart.to_dict("records")), 4)
    note = (
        f"Fewer than {FEWEST_SEEDS} seeds are common to the two designs of {names}: over tasks and seeds all runs of"
        " the one were compared with all of the other, unpaired."
    )
    return [note] if len(apart) else []


def seed_notes(frame: pd.DataFrame, designs: list[str]) -> list[str]:
    """Say which seeds each score is a mean of; designs with other seeds are named."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for design in designs:
        seeds = set(frame.loc[frame["design"] == design, "seed"]) - {""}
        groups[tuple(by_number(seeds))].append(design)
    if set(groups) == {()}:
        return []
    if len(groups) == 1:
        shared = next(iter(groups))
        what = "one seed" if len(shared) == 1 else f"{len(shared)} seeds, of which each score is the mean"
        return [f"Every design has {what}: {', '.join(shared)}."]
    parts = [f"{listed(names, 4)}: {', '.join(seeds) or 'none known'}" for seeds, names in groups.items()]
    return [f"The designs have different seeds ({'; '.join(parts)}); each score is the mean over a design's own seeds."]


def _opposed(pairs: pd.DataFrame) -> list[str]:
    """Name the pairs whose mean has the sign against which the test speaks."""
    rows = pairs[pairs["difference"] * pairs["ahead"] < 0]
    names = [f"{row['type']}, {pair_name(row)}" for row in rows.to_dict("records")]
    text = f"The mean has the other sign than the Hodges-Lehmann difference of the test in {len(rows):,} rows"
    return [f"{text}: {listed(names, 3)}."] if names else []


def attainable(tests: pd.DataFrame, settings: Settings, what: str = "difference") -> list[str]:
    """Name the types on which no result can reach alpha, and how many tasks would allow one."""
    notes, alpha = [], fraction(settings.alpha)
    for word, after in (("no", ""), ("uncorrected", after_correction(settings))):
        of_type = tests.groupby("type", sort=False)
        kinds = [str(kind) for kind, rows in of_type if (rows["reachable"] == word).all()]
        if kinds:
            family = int(tests["family_size"].max()) if after else 1
            needed = tasks_that_allow(settings.alpha, family)
            notes.append(
                f"Too few tasks on {', '.join(kinds)}: no {what} can reach {alpha}{after}, whatever the scores; that"
                f" takes {needed} tasks or more."
            )
    return notes


def tasks_that_allow(alpha: float, family: int = 1) -> int:
    """Return the fewest tasks at which any result can pass: Holm's first step asks for family x 2 / 2^n <= alpha."""
    return math.ceil(1 + math.log2(family / alpha) - 1e-9)
