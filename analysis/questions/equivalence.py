"""For every pair: told apart, equivalent within the margin, or not told."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import Numbers, equals, fraction, percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import corrected
from analysis.questions.pair_texts import family_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, after_correction, filled, p_cell, pair_name
from analysis.settings import Settings
from analysis.statistics.equivalence import equivalence
from analysis.statistics.seeds import FEWEST_SEEDS, SeedMeans, outside

PLACE = 70

TOLD, EQUIVALENT, NOT_TOLD = "told apart", "equivalent", "not told"  # a text adds the margin to the second


def answer(material: Material) -> Answer:
    """Return the table `equivalence` for the last block (all tasks); equivalence.csv has all."""
    settings, table = material.settings, equivalence_table(material)
    last = table[table["type"] == material.last]
    return Answer(
        "equivalence",
        grids=[equivalence_grid(last.iloc[material.leading(last)], settings)],
        frames={"equivalence": _for_file(table, settings)},
        about={(row["first"], row["second"]): _sentence(row, settings) for row in last.to_dict("records")},
    )


def within(settings: Settings) -> str:
    """Return "equivalent within .005": the margin is stated wherever the word is said."""
    return f"{EQUIVALENT} within {settings.numbers.margin(settings.rope)}"


def equivalence_table(material: Material) -> pd.DataFrame:
    """Return one row per (type, pair): the tests of equivalence, corrected as those of the pairs are, and `outcome`.

    `outcome`: told apart where the difference is `told` of the designs, else equivalent where both tests at the margin
    pass over tasks and over tasks and seeds, else not told. `within_margin` says the latter of pairs told apart, too.
    """
    table = equivalence_tests(material, list(material.blocks)).drop(columns="significant")
    table = table.rename(columns={"told": "within_margin"})
    outcomes = np.where(table["within_margin"], EQUIVALENT, NOT_TOLD)
    return table.assign(outcome=np.where(table["told_apart"], TOLD, outcomes))


def equivalence_tests(material: Material, kinds: list[str]) -> pd.DataFrame:
    """Return the corrected tests of equivalence within `rope=`, one row per (type, pair)."""
    settings, parts = material.settings, []
    for kind in kinds:
        rows, differences = material.pairs_on(kind), material.differences(kind)
        columns: dict[str, Any] = {name: rows[name].to_numpy() for name in ("type", "first", "second")}
        columns |= {"n_tasks": len(material.blocks[kind]), "margin": settings.rope}
        columns |= {"told_apart": rows["told"].to_numpy()}
        columns |= vars(equivalence(differences, settings.rope, settings.alpha, settings.zeros, settings.decimals))
        seeds = SeedMeans(*(rows[name].to_numpy() for name in SeedMeans.__dataclass_fields__))
        columns |= {"n_seeds": seeds.n_seeds, "p_seeds": outside(seeds, settings.rope)}
        parts.append(pd.DataFrame(columns))
    return corrected(pd.concat(parts, ignore_index=True), settings)


def _for_file(table: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Leave out what repeats p_holm, p_bh or p, and say the margin in the outcome."""
    words = table["outcome"].replace(EQUIVALENT, f"{EQUIVALENT} within {Numbers().margin(settings.rope)}")
    kept = table.drop(columns=["told_apart", "p_adjusted"]).assign(outcome=words)
    return kept.rename(columns={"p_min_adjusted": f"p_min_{settings.correction}"})


def _sentence(row: Row, settings: Settings) -> str:
    """Return the sentence that the tests of equivalence add to the verdict on one pair."""
    if row["n_seeds"] < FEWEST_SEEDS or (row["told_apart"] and not row["within_margin"]):
        return ""  # nothing is claimed of the designs, or the verdict has said it
    p = f"p {equals(row['p_adjusted'])}{after_correction(settings)} over tasks"
    tests = f"{p} and p {equals(row['p_seeds_adjusted'])} over tasks and seeds"
    word = f"is {within(settings)}" if row["within_margin"] else f"is not shown to be {within(settings)} either"
    return f"The pair {word} ({tests})."


def equivalence_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row per pair of one block: the outcome, the interval and p."""
    kind, n, numbers = table["type"].iloc[0], int(table["n_tasks"].iloc[0]), settings.numbers

    def cells(row: Row) -> list[Cell]:
        word = within(settings) if row["outcome"] == EQUIVALENT else row["outcome"]
        both = (within(settings),) if row["told_apart"] and row["within_margin"] else ()
        ends = Cell("n.a." if np.isinf(row["low"]) else numbers.interval(row["low"], row["high"]))
        return [Cell(pair_name(row)), Cell(word, below=both), ends, p_cell(row, settings)]

    margin, alpha, after = numbers.margin(settings.rope), fraction(settings.alpha), after_correction(settings)
    over = f" over {family_text(table, settings)}" if after else ""
    caption = (
        f"Pairs on {kind} (n = {n}), second minus first. Outcome: {TOLD}, where the table of pairs has a star;"
        f" {within(settings)}, where two one-sided signed-rank tests, of the differences shifted by the margin {margin}"
        f" (rope=) upwards and downwards, both pass at {alpha}{after}{over}, and so do two of the mean over tasks and"
        f" {FEWEST_SEEDS} seeds or more; else {NOT_TOLD}. HL: Hodges-Lehmann interval, which lies within the margin"
        " where both pass uncorrected. p: the larger of the two."
    )
    header = [PAIR, "Outcome", f"{percent(2 * settings.alpha)} HL", "p equivalent"]
    grid = Grid("equivalence", caption, header, title=f"Practical equivalence of pairs, {kind}")
    return filled(grid, table, cells, settings.rows_shown, f"{OF_BEST}; equivalence.csv has all.")
