"""Main effects and interactions of the factors that the designs cross, with the marginal means."""

import pandas as pd

from analysis.formats import p_text
from analysis.render import Section, Table
from analysis.tables.comparison import Comparison
from analysis.tables.crossings import factor_table
from analysis.tables.marks import family_text, marked, marks_text
from analysis.tables.tested_effects import Factorial, factorial_effects

COLUMNS = {
    "p": "p over tasks and seeds",
    "p_holm": "Holm p",
    "p_permutation": "p over tasks",
    "p_permutation_holm": "Holm p (tasks)",
}


def section(compared: Comparison) -> Section | None:
    """Return tests and marginal means of the complete crossing on all tasks, None where no factor is known; the csv
    files have every type."""
    factors = factor_table(compared.designs)
    effects, notes = factorial_effects(compared.matrix, factors, compared.blocks, compared.settings, compared.frame)
    if effects is None:
        return Section("effects", "Effects of the factors", notes=notes) if notes else None
    tables = [effects_table(effects, compared.last), marginals_table(effects, compared)]
    frames = {"effects": effects.tests, "marginal_means": effects.marginals}
    return Section("effects", "Effects of the factors", tables, frames=frames, notes=notes)


def effects_table(effects: Factorial, kind: str) -> Table:
    """One row per effect: F, partial eta squared, p of both tests and Holm's p."""
    tests = effects.tests[effects.tests["type"] == kind]
    shown = pd.DataFrame(
        {
            "Effect": list(map(marked, tests["effect"], tests["significant"])),
            "df": tests["df"].astype(int).tolist(),
            "F": list(map(f_value, tests["F"])),
            "Partial eta squared": tests["partial_eta_squared"].tolist(),
            **{title: tests[name].tolist() for name, title in COLUMNS.items()},
        }
    )
    formats = dict.fromkeys(COLUMNS.values(), p_text)
    caption = (
        f"Effects in {effects.crossing.name}{_held(effects)}: F of the repeated-measures analysis over tasks, p with"
        f" tasks and seeds random, and p over tasks by sign-flip permutation. {family_text(tests, 'effect')};"
        f" {marks_text(tests, 'permutation')}."
    )
    return Table("effects", "Main effects and interactions", caption, shown, formats, digits=2)


def f_value(value: float) -> str:
    """F with two decimals, from 100 on with none: 4.12, 0.03, 312, inf; "-" where there is none (one task)."""
    if pd.isna(value):
        return "-"
    return f"{value:.0f}" if value >= 99.995 else f"{value:.2f}"


def marginals_table(effects: Factorial, compared: Comparison) -> Table:
    """One row per level: its mean over the other factors, and level minus grand mean."""
    rows = effects.marginals[effects.marginals["type"] == compared.last]
    shown = rows[["factor", "level", "mean", "difference"]].set_axis(
        ["Factor", "Level", "Mean", "Minus grand mean"], axis=1
    )
    formats = {"Mean": compared.unit.score, "Minus grand mean": compared.unit.signed}
    caption = f"Mean over {compared.over} of each level over the other factors{_held(effects)}."
    return Table("marginal-means", "Marginal means", caption, shown.reset_index(drop=True), formats, left=2)


def _held(effects: Factorial) -> str:
    fixed = effects.crossing.fixed
    return f" with {', '.join(f'{name} = {level}' for name, level in fixed.items())}" if fixed else ""
