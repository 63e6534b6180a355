"""Main effects and interactions of the factors that the designs cross, with the marginal means."""

import math

import pandas as pd

from analysis.grids.formats import Numbers, percent, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.crossings import factor_table
from analysis.questions.pair_texts import correction_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, marked_cell, rest_text, star_legend
from analysis.questions.tested_effects import Factorial, factorial_effects
from analysis.settings import Settings
from analysis.statistics.sign_flip import EXACT_UP_TO, RANDOM_FLIPS, SEED

PLACE = 40
# endings of the tables' names and of their titles: the crossing with most factors, that with most designs
ENDINGS = {"": "", "-wide": " over more designs"}


def answer(material: Material) -> Answer:
    """Return the tests and marginal means of every complete crossing, at most two."""
    settings, factors = material.settings, factor_table(material.designs)
    effects, notes = factorial_effects(material.matrix, factors, material.blocks, settings, material.frame)
    return Answer(
        "effects",
        grids=effect_grids(effects, settings),
        frames=effects_for_file(effects),
        notes=notes,
        main=True,
        of_designs=False,
        of_scores=False,  # but the marginal means, which say so themselves
    )


def effects_for_file(effects: list[Factorial]) -> dict[str, pd.DataFrame]:
    """Return the tests and the marginal means of all crossings, each with a first column that names its crossing."""
    if not effects:
        return {}
    names = [factorial.crossing.name for factorial in effects]
    tables = {
        "effects": [factorial.tests for factorial in effects],
        "marginal_means": [factorial.marginals for factorial in effects],
    }
    joined = {name: pd.concat(parts, keys=names, names=["crossing", ""]) for name, parts in tables.items()}
    return {name: table.reset_index(level=0).reset_index(drop=True) for name, table in joined.items()}


def effect_grids(effects: list[Factorial], settings: Settings) -> list[Grid]:
    """Return tests and marginal means of every crossing, in the order in which they are printed."""
    pairs = zip(effects, ENDINGS, strict=False)
    return [make(f, settings, end) for f, end in pairs for make in (effects_grid, marginals_grid)]


def effects_grid(factorial: Factorial, settings: Settings, ending: str = "") -> Grid:
    """One row per effect, one column per type: F with its mark; below it partial eta squared and the corrected p."""

    def cell(row: Row) -> Cell:
        eta = row["partial_eta_squared"]
        return marked_cell(f_value(row["F"]), row, "" if math.isnan(eta) else f"eta2 {score(eta, 2)}", "permutation")

    tests = factorial.tests
    rows = []
    for effect, of_types in tests.groupby("effect", sort=False):
        degrees = str(of_types["df"].iloc[0])
        rows.append([Cell(str(effect)), Cell(degrees), *map(cell, of_types.to_dict("records"))])
    header, title = ["Effect", "df", *_heads(tests)], f"Main effects and interactions{ENDINGS[ending]}"
    shown, rest = rows[: settings.rows_shown], rest_text(settings.rows_shown, len(rows), "rows; effects.csv has all.")
    return Grid(f"effects{ending}", effects_caption(factorial, settings), header, shown, rest=rest, title=title)


def f_value(value: float) -> str:
    """F with two decimals, from 100 on with none: 4.12, 0.03, 312, inf; "-" where there is none (one task)."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 99.995 else f"{value:.2f}"


def _heads(table: pd.DataFrame) -> list[str]:
    return [f"{kind} (n = {n})" for kind, n in table.groupby("type", sort=False)["n_tasks"].first().items()]


def effects_caption(factorial: Factorial, settings: Settings) -> str:
    """Name the design, the statistic, the test, the correction and the marks."""
    tests, crossing = factorial.tests, factorial.crossing
    legend = star_legend(tests, settings, "permutation of signs")
    flips = f"all sign flips up to {EXACT_UP_TO} tasks, else {RANDOM_FLIPS:,} random ones (seed {SEED})"
    return (
        f"Main effects and interactions in {crossing.name}, {len(crossing.designs)} designs{_held(factorial)}: F of"
        " the repeated-measures analysis (error: effect x task, df x (n - 1)), partial eta squared, and p of the"
        f" sign-flip permutation test, which takes F as its statistic ({flips}); the unit is the task;"
        f" {correction_text(tests, settings, 'effects')}. {legend}."
    )


def marginals_grid(factorial: Factorial, settings: Settings, ending: str = "") -> Grid:
    """One row per level, one column per type: its mean; below it level minus grand mean with its interval."""
    table = factorial.marginals
    rows, last = [], ""
    for (factor, level), of_types in table.groupby(["factor", "level"], sort=False):
        cells = [_mean_cell(row, settings.numbers) for row in of_types.to_dict("records")]
        rows.append([Cell("" if factor == last else factor), Cell(level), *cells])
        last = factor
    caption = (
        f"Marginal means in {factorial.crossing.name}{_held(factorial)}: mean score of each level over tasks and the"
        " other factors; below it level minus grand mean within the task, with its"
        f" {percent(settings.alpha)} t interval over tasks. They describe; what is tested is F.{settings.numbers.said}"
    )
    if table["mean"].isna().any():
        caption += " For two factors of two levels: the difference of differences."
    header, title = ["Factor", "Level", *_heads(table)], f"Marginal means{ENDINGS[ending]}"
    shown = rows[: settings.rows_shown]
    rest = rest_text(settings.rows_shown, len(rows), "rows; marginal_means.csv has all.")
    return Grid(f"marginals{ending}", caption, header, shown, left=2, rest=rest, title=title)


def _mean_cell(row: Row, numbers: Numbers) -> Cell:
    signed = numbers.signed
    interval = "-" if math.isnan(row["low"]) else f"{signed(row['low'])} to {signed(row['high'])}"
    if math.isnan(row["mean"]):
        return Cell(signed(row["difference"]), below=(interval,))
    return Cell(numbers.score(row["mean"]), below=(signed(row["difference"]), interval))


def _held(factorial: Factorial) -> str:
    fixed = factorial.crossing.fixed
    return f" with {', '.join(f'{name} = {level}' for name, level in fixed.items())}" if fixed else ""
