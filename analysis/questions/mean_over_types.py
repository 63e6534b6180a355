"""Differences of designs in the mean over task types, in which every type counts alike, however many tasks it has."""

import numpy as np
import pandas as pd

from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import corrected
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, after_correction, filled, p_cell, pair_name
from analysis.settings import Settings
from analysis.statistics.arrays import rounded
from analysis.statistics.cross_checks import RESAMPLED_PAIRS
from analysis.statistics.stratified import stratified
from cli.errors import UserError, nearest

PLACE = 36
METHODS = (
    "The mean over task types was tested by flipping the signs of differences within types [@pitman1937]; its interval"
    " is that of stratified sampling [@cochran1977] with Satterthwaite's degrees of freedom [@satterthwaite1946]."
)


def answer(material: Material) -> Answer | None:
    """Return the table `mean_over_types`; None with one type, a note alone where pairs are too many."""
    settings, weights = material.settings.of_other_tests, _weights(material)
    pairs = material.pairs_on(material.last)
    if len(material.types) < 2:
        return None
    if len(pairs) > RESAMPLED_PAIRS:
        few = f"The mean over types is tested for up to {RESAMPLED_PAIRS} pairs."
        return Answer("mean_over_types", notes=[few], aside=True)
    block = pd.Index(material.blocks[material.last])
    strata = [block.get_indexer(tasks) for tasks in material.types.values()]
    differences = rounded(material.differences(material.last), settings.decimals)
    tested = stratified(differences, strata, np.array(list(weights.values())), 1 - settings.alpha)
    table = pairs[["first", "second"]].assign(
        type="types", difference=tested.difference, low=tested.low, high=tested.high, p=tested.flips.p
    )
    table = corrected(table.assign(p_min=tested.flips.p_min, exact=tested.flips.exact), settings)
    table = table.drop(columns=["type", "told", "p_seeds_adjusted"])
    grid = _grid(table.iloc[material.leading(table)], weights, tested.flips.flips, settings)
    return Answer("mean_over_types", grids=[grid], frames={"mean_over_types": table}, methods=[METHODS])


def _weights(material: Material) -> dict[str, float]:
    """Return type -> weight, 1 where `type_weights=` names none. Raises UserError for a type that is not there."""
    given = material.settings.type_weights
    if unknown := [kind for kind in given if kind not in material.types]:
        raise UserError(f"type_weights: there is no type {unknown[0]}. {nearest(unknown[0], material.types)}")
    return {kind: given.get(kind, 1.0) for kind in material.types}


def _grid(table: pd.DataFrame, weights: dict[str, float], flips: int, settings: Settings) -> Grid:
    numbers = settings.numbers

    def cells(row: Row) -> list[Cell]:
        sizes = numbers.signed(row["difference"]), numbers.interval(row["low"], row["high"])
        return [*map(Cell, (pair_name(row), *sizes)), p_cell(row, settings, star=False)]

    alike = len(set(weights.values())) == 1
    how = "each counts alike" if alike else f"weights {', '.join(f'{kind} {w:g}' for kind, w in weights.items())}"
    patterns = "all sign patterns" if table["exact"].iloc[0] else f"{flips:,} random sign patterns"
    if not flips:
        patterns = "normal curve"
    after = after_correction(settings) and f", below it{after_correction(settings)} over {len(table)} pairs"
    caption = (
        f"Mean over the {len(weights)} task types ({how}), second minus first: {percent(settings.alpha)} interval with"
        " tasks drawn within types (n.a. where a type has one task), p by flips of the signs of tasks"
        f" ({patterns}){after}. No star: p speaks of these runs on tasks of these types."
    )
    header = [PAIR, "Mean over types", percent(settings.alpha), "p"]
    grid = Grid("mean-over-types", caption, header, title="Mean over task types")
    return filled(grid, table, cells, settings.rows_shown, f"{OF_BEST}; mean_over_types.csv has all.")
