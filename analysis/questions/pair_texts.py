"""Sentences on a table of pairs: the tests, the correction and its families."""

from collections import defaultdict

import pandas as pd

from analysis.names import by_number, listed
from analysis.questions.compared_pairs import NO
from analysis.questions.question import Material
from analysis.questions.tables import pair_name
from analysis.settings import Settings

WILCOXON = "two-sided exact Wilcoxon signed-rank test over tasks, differences of zero dropped"


def correction_text(tests: pd.DataFrame, settings: Settings, which: str = "") -> str:
    """Return "Holm over 6 pairs with eos-causal on all tasks together, and over 42 by type". which: not pairs."""
    which = which or (f"pairs with {settings.against}" if settings.against else "pairs")
    sizes = tests.drop_duplicates("family_size", keep="last")["family_size"].tolist()[::-1]
    return f"Holm over {sizes[0]:,} {which}" + (
        f", on the types of task together over {sizes[1]:,}" if sizes[1:] else ""
    )


def pair_notes(material: Material) -> list[str]:
    """Return what a reader must know beside the tables: seeds, rounding, and what the number of tasks allows."""
    pairs, settings = material.pairs, material.settings
    rounding = f"Differences were rounded to {settings.decimals} decimals before ranking, so float noise makes no rank."
    seeds = seed_notes(material.frame, list(material.designs))
    return [*seeds, rounding, *_opposed(pairs)]


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
    """Name the pairs on whose direction the mean and Wilcoxon's test differ, where that test is significant."""
    rows = pairs[(pairs["significant"] != NO) & (pairs["mean_difference"] * (pairs["w_plus"] - pairs["w_minus"]) < 0)]
    names = [f"{row['type']}, {pair_name(row)}" for row in rows.to_dict("records")]
    text = f"The mean has the other sign than Wilcoxon's rank sums in {len(rows):,} significant rows"
    return [f"{text}: {listed(names, 3)}."] if names else []
