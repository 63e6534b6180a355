"""Factorial effects -> grids: tests of the effects, marginal means."""

import math
from typing import TYPE_CHECKING

from analysis.factorial.effects import Factorial
from analysis.grids.formats import fraction, percent, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.settings import Settings
from analysis.statistics.correction import correction_name, passes

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = ("", "-wide")  # of the tables' names: the crossing with most factors, that with most designs


def effect_grids(effects: list[Factorial], settings: Settings) -> list[Grid]:
    """Return tests and marginal means of every crossing, in the order in which they are printed."""
    pairs = list(zip(effects, ENDINGS, strict=False))
    return [make(f, settings, end) for f, end in pairs for make in (effects_grid, marginals_grid)]


def effects_grid(factorial: Factorial, settings: Settings, ending: str = "") -> Grid:
    """One row an effect, one column a type: F with its mark; below it partial eta squared and the corrected p."""
    tests = factorial.tests
    rows = []
    for effect in dict.fromkeys(tests["effect"]):
        own = tests[tests["effect"] == effect]
        cells = [_effect_cell(row, settings) for _, row in own.iterrows()]
        rows.append([Cell(effect), Cell(str(own["df"].iloc[0])), *cells])
    shown, rest = _cut(rows, settings.rows_shown, "effects.csv")
    header = ["Effect", "df", *_heads(tests)]
    return Grid(f"effects{ending}", effects_caption(factorial, settings), header, shown, rest=rest)


def _cut(rows: list[list[Cell]], most: int, file: str) -> tuple[list[list[Cell]], str]:
    return rows[:most], f"The first {most} of {len(rows)} rows; {file} has all." if len(rows) > most else ""


def _effect_cell(row: "pd.Series", settings: Settings) -> Cell:
    """Where alpha is out of reach, the smallest p that so many tasks allow, as in the table of pairs."""
    text = f_value(row["F"])
    size = "" if math.isnan(row["partial_eta_squared"]) else f"eta2 {score(row['partial_eta_squared'], 2)}"
    raw_only = "(*)" if passes(row["p"], settings.alpha) else ""
    if row["reachable"] == "no":
        return Cell(text, below=tuple(filter(None, (size, f"n.a.: p >= {fraction(row['p_min'])}"))))
    if row["reachable"] == "uncorrected":
        floor = f"n.a.: p >= {fraction(row['p_min_adjusted'])}"
        return Cell(text, mark=raw_only, below=(size, floor, f"raw {fraction(row['p'])}"))
    return Cell(text, mark="*" if row["significant"] else raw_only, below=(size, fraction(row["p_adjusted"])))


def f_value(value: float) -> str:
    """F with two decimals, from 100 on with none: 4.12, 0.03, 312, inf; "-" where there is none (one task)."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 99.995 else f"{value:.2f}"


def _heads(table: "pd.DataFrame") -> list[str]:
    return [f"{kind} (n = {n})" for kind, n in table.groupby("type", sort=False)["n_tasks"].first().items()]


def effects_caption(factorial: Factorial, settings: Settings) -> str:
    """Name the design, the statistic, the test, the correction and the marks."""
    tests, crossing = factorial.tests, factorial.crossing
    alpha, size = fraction(settings.alpha), int(tests["family_size"].max())
    what = "the effects of one task type" if settings.family == "type" else "all effects and task types of the table"
    correction, legend = "no correction for many tests", f"* = p at most {alpha}"
    if settings.correction != "none":
        correction = f"{correction_name(settings.correction)} correction over {what} (family of {size})"
        legend += f" after the correction; (*) = at most {alpha} only before it"
    if (tests["reachable"] != "yes").any():
        legend += f"; n.a. = so few tasks that {alpha} cannot be reached, whatever the scores"
    return (
        f"Main effects and interactions in {crossing.name}, {len(crossing.designs)} designs{_held(factorial)}: F of"
        " the repeated-measures analysis (error: effect x task, df x (n - 1)), partial eta squared, and p of the"
        f" sign-flip permutation test, which takes F as its statistic, so that a star belongs to F; the unit is the"
        f" task; {correction}. {legend}."
    )


def marginals_grid(factorial: Factorial, settings: Settings, ending: str = "") -> Grid:
    """One row a level, one column a type: its mean; below it level minus grand mean with its interval."""
    table = factorial.marginals
    rows, last = [], ""
    for factor, level in dict.fromkeys(zip(table["factor"], table["level"], strict=True)):
        own = table[(table["factor"] == factor) & (table["level"] == level)]
        rows.append([Cell("" if factor == last else factor), Cell(level), *[_mean_cell(r) for _, r in own.iterrows()]])
        last = factor
    caption = (
        f"Marginal means in {factorial.crossing.name}{_held(factorial)}: mean score of each level over tasks and the"
        " other factors; below it level minus grand mean within the task, with its"
        f" {percent(settings.alpha)} t interval over tasks. They describe; what is tested is F."
    )
    if table["mean"].isna().any():
        caption += " For two factors of two levels: the difference of differences."
    shown, rest = _cut(rows, settings.rows_shown, "marginal_means.csv")
    return Grid(f"marginals{ending}", caption, ["Factor", "Level", *_heads(table)], shown, left=2, rest=rest)


def _mean_cell(row: "pd.Series") -> Cell:
    interval = "-" if math.isnan(row["low"]) else f"{signed(row['low'])} to {signed(row['high'])}"
    if math.isnan(row["mean"]):
        return Cell(signed(row["difference"]), below=(interval,))
    return Cell(score(row["mean"]), below=(signed(row["difference"]), interval))


def _held(factorial: Factorial) -> str:
    fixed = factorial.crossing.fixed
    return f" with {', '.join(f'{name} = {level}' for name, level in fixed.items())}" if fixed else ""
