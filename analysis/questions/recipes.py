"""How far the difference of two designs varies with the seed under each recipe: does one of them save seeds?

A recipe is chosen by the spread over seeds of differences, not by the mean: docs/decisions/training-recipe.md.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from analysis.grids.formats import fraction, percent, score
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import common_seeds, seed_cube
from analysis.questions.crossings import Crossing, factor_table, varying
from analysis.questions.question import Answer, Material
from analysis.questions.same_order import crossed
from analysis.questions.tables import Row, after_correction, filled
from analysis.statistics.correction import CORRECTIONS, Family, passes
from analysis.statistics.spreads import FEWEST_PAIRED, FEWEST_TOLD, paired_ratio
from records.identity import below

PLACE = 66
MOST_NAMED = 4
OF_DESIGNS = ("pooler", "attn")  # with what lies below them; the first other factor that varies is the recipe
METHODS = (
    "Spreads over seeds of differences were compared between recipes by flipping the signs of the differences of"
    " squares about the medians; their intervals are Pitman's and Morgan's [@pitman1939; @morgan1939]."
)


def answer(material: Material) -> Answer | None:
    """Return the table; None without two designs under two recipes, or with too few seeds that all have."""
    crossing = _crossing(material)
    if crossing is None:
        return None
    table = recipe_table(material, crossing)
    if table.empty:
        return None
    factor, (usual, *_) = next(iter(crossing.levels.items()))
    told = [f"{row['pair']} at {row['recipe']}" for row in table[table["told"]].to_dict("records")]
    finding = f"told of {listed(told, MOST_NAMED)}" if told else "not told of any pair"
    finding = f"That another {factor} changes how far a difference varies with the seed is {finding}."
    return Answer(
        "recipes",
        grids=[_grid(table, material, factor, usual, finding)],
        frames={"recipes": table},
        notes=[finding],
        methods=[METHODS],
    )


def _crossing(material: Material) -> Crossing | None:
    factors = varying(factor_table(material.designs))
    recipe = next((name for name in factors if not below(name, OF_DESIGNS) and name != "training"), None)
    if recipe is None or factors.shape[1] < 2:
        return None
    if material.control:  # its recipe is the usual one; without it the first is
        factors = factors.sort_values(recipe, key=lambda of: of != factors.at[material.control, recipe], kind="stable")
    crossing = crossed(factors, recipe)
    return crossing if crossing and len(crossing.levels["design"]) > 1 else None


def recipe_table(material: Material, crossing: Crossing) -> pd.DataFrame:
    """Return one row per (pair of designs, recipe but the first): both spreads, their ratio and its tests.

    `sd_usual`, `sd`: over the seeds that all have, of the difference of two runs' means, under the first recipe and
    this; `ratio` with `low`, `high`: of the second by the first; `p`, `p_adjusted`: of a ratio of 1, corrected over all
    rows.
    """
    settings, (levels, cells) = material.settings.of_other_tests, crossing.levels.values()
    matrix = material.matrix.loc[material.blocks[material.last], crossing.designs]
    runs = common_seeds(seed_cube(material.frame, matrix)).mean(axis=1).reshape(len(levels), len(cells), -1)
    rows = []
    for a, b in combinations(range(len(cells)), 2):
        usual, *others = runs[:, b] - runs[:, a]
        for recipe, of_recipe in zip(levels[1:], others, strict=True):
            of = paired_ratio(usual, of_recipe, 1 - settings.alpha) if runs.shape[2] >= FEWEST_PAIRED else None
            if of is not None and not np.isnan(of.p):
                row = {"pair": f"{cells[b]} - {cells[a]}", "recipe": recipe, "n_seeds": runs.shape[2]}
                row |= {"sd_usual": usual.std(ddof=1), "sd": of_recipe.std(ddof=1)}
                rows.append(row | vars(of))
    table = pd.DataFrame(rows)
    if rows:
        p = CORRECTIONS[settings.correction](table["p"].to_numpy(), Family(len(table)))
        table = table.assign(p_adjusted=p, told=passes(p, settings.alpha))
    return table


def _grid(table: pd.DataFrame, material: Material, factor: str, usual: str, finding: str) -> Grid:
    settings, alpha = material.settings.of_other_tests, percent(material.settings.alpha)
    finer = replace(settings.numbers, digits=settings.numbers.digits + 1)
    few = f"Fewer than {FEWEST_TOLD} seeds can tell nothing. " * bool(table["n_seeds"].iloc[0] < FEWEST_TOLD)

    def cells(row: Row) -> list[Cell]:
        ends = f"{score(row['low'], 2)} to {score(row['high'], 2)}"
        p = Cell(fraction(row["p"]), mark="*" if row["told"] else "", below=(fraction(row["p_adjusted"]),))
        sizes = [Cell(finer.score(row[name])) for name in ("sd_usual", "sd")]
        return [Cell(row["pair"]), Cell(row["recipe"]), *sizes, Cell(score(row["ratio"], 2), below=(ends,)), p]

    caption = (
        f"Standard deviation over {table['n_seeds'].iloc[0]} seeds of the difference of two designs' means over"
        f" {material.over}, with {factor} = {usual} and with another; ratio of the second to the first, whose square is"
        f" that of the seeds for the same standard error, with its {alpha} interval, uncorrected, of normal runs"
        " (Pitman and Morgan); and p that it is 1, of flipped signs, which takes no runs to be normal, below it"
        f"{after_correction(settings)} over the {len(table)} rows. * = told. {few}{finding}{settings.numbers.said}"
    )
    header = ["Pair", factor, f"SD, {usual}", "SD", "Ratio", "p"]
    grid = Grid("recipes", caption, header, left=2, title="Spread over seeds by recipe")
    return filled(grid, table, cells, settings.rows_shown, "rows; recipes.csv has all.")
