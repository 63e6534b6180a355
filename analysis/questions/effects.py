"""Main effects and interactions of the factors that the designs cross, with the marginal means."""

import math

import pandas as pd

from analysis.grids.formats import fraction, percent, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.crossings import factor_table
from analysis.questions.pairs import for_file
from analysis.questions.question import Answer, Material
from analysis.questions.tested_effects import Factorial, factorial_effects
from analysis.settings import Settings
from analysis.statistics.correction import correction_name, passes
from analysis.statistics.sign_flip import EXACT_UP_TO, SEED

PLACE = 40
# endings of the tables' names and of their titles: the crossing with most factors, that with most designs
ENDINGS = {"": "", "-wide": " over more designs"}


def answer(material: Material) -> Answer:
    """Return the tests and marginal means of every complete crossing, at most two."""
    settings = material.settings
    effects, notes = factorial_effects(material.matrix, factor_table(material.designs), material.blocks, settings)
    tables = effects_for_file(effects)
    csv = {"effects": for_file(tables["effects"], settings.correction)} if effects else {}
    return Answer(
        "effects",
        grids=effect_grids(effects, settings),
        frames=tables,
        csv=csv,
        notes=[*notes, *effect_notes([found.tests for found in effects], settings)],
        methods=_methods(effects, settings),
        facts={"crossings": [{"name": f.crossing.name, **vars(f.crossing)} for f in effects]},
        main=True,
        of_designs=False,
    )


def effects_for_file(effects: list[Factorial]) -> dict[str, pd.DataFrame]:
    """Return the tests and the marginal means of all crossings, each with a first column that names its crossing."""
    if not effects:
        return {}
    names = [factorial.crossing.name for factorial in effects]
    tables = {"effects": [found.tests for found in effects], "marginal_means": [found.marginals for found in effects]}
    joined = {name: pd.concat(parts, keys=names, names=["crossing", ""]) for name, parts in tables.items()}
    return {name: table.reset_index(level=0).reset_index(drop=True) for name, table in joined.items()}


def effect_grids(effects: list[Factorial], settings: Settings) -> list[Grid]:
    """Return tests and marginal means of every crossing, in the order in which they are printed."""
    pairs = zip(effects, ENDINGS, strict=False)
    return [make(f, settings, end) for f, end in pairs for make in (effects_grid, marginals_grid)]


def effects_grid(factorial: Factorial, settings: Settings, ending: str = "") -> Grid:
    """One row per effect, one column per type: F with its mark; below it partial eta squared and the corrected p."""
    tests = factorial.tests
    rows = []
    for effect in dict.fromkeys(tests["effect"]):
        own = tests[tests["effect"] == effect]
        cells = [_effect_cell(row, settings) for _, row in own.iterrows()]
        rows.append([Cell(effect), Cell(str(own["df"].iloc[0])), *cells])
    shown, rest = _cut(rows, settings.rows_shown, "effects.csv")
    header, title = ["Effect", "df", *_heads(tests)], f"Main effects and interactions{ENDINGS[ending]}"
    return Grid(f"effects{ending}", effects_caption(factorial, settings), header, shown, rest=rest, title=title)


def _cut(rows: list[list[Cell]], most: int, file: str) -> tuple[list[list[Cell]], str]:
    return rows[:most], f"The first {most} of {len(rows)} rows; {file} has all." if len(rows) > most else ""


def _effect_cell(row: pd.Series, settings: Settings) -> Cell:
    """Return the cell of an effect; where alpha is out of reach, with the smallest p that so many tasks allow."""
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


def _heads(table: pd.DataFrame) -> list[str]:
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
    """One row per level, one column per type: its mean; below it level minus grand mean with its interval."""
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
    header, title = ["Factor", "Level", *_heads(table)], f"Marginal means{ENDINGS[ending]}"
    return Grid(f"marginals{ending}", caption, header, shown, left=2, rest=rest, title=title)


def _mean_cell(row: pd.Series) -> Cell:
    interval = "-" if math.isnan(row["low"]) else f"{signed(row['low'])} to {signed(row['high'])}"
    if math.isnan(row["mean"]):
        return Cell(signed(row["difference"]), below=(interval,))
    return Cell(score(row["mean"]), below=(signed(row["difference"]), interval))


def _held(factorial: Factorial) -> str:
    fixed = factorial.crossing.fixed
    return f" with {', '.join(f'{name} = {level}' for name, level in fixed.items())}" if fixed else ""


def effect_notes(tables: list[pd.DataFrame], settings: Settings) -> list[str]:
    """Return the notes on the tests of all crossings together, none where there are no effects."""
    if not tables:
        return []
    tests = pd.concat(tables)
    notes = [_counted(tests), _attainable(tests, settings)]
    single = list(dict.fromkeys(tests.loc[tests["n_tasks"] < 2, "type"]))
    if single:
        notes.append(f"Effects: {', '.join(single)} has one task, so there is no F and p is 1.")
    return notes


def _counted(tests: pd.DataFrame) -> str:
    exact = f"all sign flips are counted (exact) with up to {EXACT_UP_TO} tasks"
    drawn = list(dict.fromkeys(tests.loc[~tests["exact"].astype(bool), "type"]))
    if not drawn:
        return f"Effects: {exact}."
    p = "p = (b + 1) / (m + 1)"
    flips = tests.loc[~tests["exact"].astype(bool), "flips"]
    few, many = int(flips.min()), int(flips.max())
    how_many = f"{many:,}" if few == many else f"{few:,} to {many:,}"
    return f"Effects: {exact}; {', '.join(drawn)}: {how_many} random ones (seed {SEED}), {p}."


def _attainable(tests: pd.DataFrame, settings: Settings) -> str:
    parts = []
    for kind, rows in tests.groupby("type", sort=False):
        lowest = rows.iloc[int(rows["p_min_adjusted"].to_numpy().argmin())]
        after = "" if settings.correction == "none" else f" ({fraction(lowest['p_min_adjusted'])})"
        parts.append(f"{kind} {fraction(lowest['p_min'])}{after}")
    name = "" if settings.correction == "none" else f" (in brackets after {correction_name(settings.correction)})"
    note = f"Smallest p of an effect that the number of tasks allows{name}: {'; '.join(parts)}."
    return f"{note} {_needed(tests, settings)}" if (tests["reachable"] == "uncorrected").any() else note


def _needed(tests: pd.DataFrame, settings: Settings) -> str:
    """Holm's first step asks for family x 2 / 2^n <= alpha."""
    if settings.correction != "holm":
        return "More tasks a type, or fewer effects, would mend it."
    family = int(tests["family_size"].max())
    needed = math.ceil(1 + math.log2(family / settings.alpha) - 1e-9)
    return f"A family of {family} effects needs {needed} tasks a type to reach {fraction(settings.alpha)}."


def _methods(effects: list[Factorial], settings: Settings) -> list[str]:
    if not effects:
        return []
    names = " and ".join(found.crossing.name for found in effects)
    tests = pd.concat([found.tests for found in effects])
    corrected, size = correction_name(settings.correction), int(tests["family_size"].max())
    after = f"; {corrected} over the effects of one task type (family of {size})" if corrected else ""
    sentence = (
        f"Main effects and interactions ({names}) were tested over tasks by sign flips of within-task contrasts"
        f" [@winkler2014], with the F of the repeated-measures analysis as the statistic{after}."
    )
    drawn = tests[~tests["exact"].astype(bool)]
    if drawn.empty:
        return [sentence]
    return [
        sentence,
        f"With more than {EXACT_UP_TO} tasks up to {int(drawn['flips'].max()):,} random flips were drawn (seed {SEED}),"
        " and p = (b + 1) / (m + 1) [@phipson2010].",
    ]
