"""Power of the number of tasks: attainable p, power, detectable difference and tasks needed, pair by pair."""

import math
from collections.abc import Callable

import pandas as pd

from analysis.grids.formats import fraction, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, filled, pair_name
from analysis.settings import Settings
from analysis.statistics.correction import passes
from analysis.statistics.power import LEAST_TASKS, MOST_TASKS, SAMPLES, SEED, Shifted, detectable, power, tasks_needed

PLACE = 110

MOST_PAIRS = 45  # all pairs of ten designs: with more, only the first, and only on the last block
KEPT = ("type", "first", "second", "n_zero", "difference", "p", "p_min", "p_min_adjusted", "reachable")  # of the pairs
FIRST_STEP = "_first_step"  # ends the columns at alpha / family, which Holm asks of the smallest p


def answer(material: Material) -> Answer:
    """Return the table of power for all tasks together; the csv holds every task type too."""
    table = power_table(material)
    last = table[table["type"] == material.last]
    grid = power_grid(last.iloc[material.leading(last)], material.settings)
    return Answer("power", grids=[grid], frames={"power": table})


def power_table(material: Material) -> pd.DataFrame:
    """Return one row per (type, pair): `p_min` and its correction, spread, power, tasks needed, detectable difference.

    `power_delta` is at alpha, `power_delta_first_step` at alpha / family; `delta` is the stated difference. `tasks_*`
    is the number of tasks with a power of .8, empty beyond 500; what needs a spread is empty below five tasks.
    """
    matrix, settings, rows = material.matrix, material.settings, []
    many = len(material.pairs_on(material.last)) > MOST_PAIRS
    for kind in [material.last] if many else material.blocks:
        pairs, tasks = material.pairs_on(kind), material.blocks[kind]
        for row in pairs.iloc[sorted(material.leading(pairs)[:MOST_PAIRS])].to_dict("records"):
            pair = Shifted((matrix.loc[tasks, row["second"]] - matrix.loc[tasks, row["first"]]).to_numpy(dtype=float))
            known = {name: row[name] for name in KEPT} | {"n_tasks": len(tasks)}
            known |= {"level_first_step": settings.alpha / row["family_size"], "delta": settings.delta}
            rows.append(known | _simulated(pair, row["family_size"], settings))
    return pd.DataFrame(rows)


def _simulated(pair: Shifted, family: int, settings: Settings) -> dict[str, float]:
    sizes, n = {"sd": pair.spread}, len(pair.differences)
    effect = -settings.delta if pair.mean < 0 else settings.delta
    names = ("detectable", "power_delta", "tasks_delta")
    for ending, level in (("", settings.alpha), (FIRST_STEP, settings.alpha / family)):
        found = [math.nan] * 3
        if n >= LEAST_TASKS:
            values = pair.at(effect, settings.decimals)
            found = [detectable(pair, level), power(values, level, n), tasks_needed(values, level)]
        sizes |= {f"{name}{ending}": value for name, value in zip(names, found, strict=True)}
    return sizes


def power_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row a pair. Where a correction is made, each cell has the value at its first step, then that at alpha."""
    n, corrects, numbers = int(table["n_tasks"].iloc[0]), settings.correction != "none", settings.numbers
    alpha, delta = fraction(settings.alpha), numbers.margin(settings.delta)

    def cell(row: Row, name: str, show: Callable[[float], str]) -> Cell:
        raw = "-" if math.isnan(row[name]) else show(row[name])
        first = row[f"{name}{FIRST_STEP}"]
        return Cell("-" if math.isnan(first) else show(first), below=(f"raw {raw}",)) if corrects else Cell(raw)

    def cells(row: Row) -> list[Cell]:
        floor = row["p_min_adjusted" if corrects else "p_min"]
        smallest = f"{'' if passes(floor, settings.alpha) else 'n.a.: p >= '}{fraction(floor)}"
        return [
            *map(Cell, (pair_name(row), smallest, numbers.score(row["sd"]))),
            cell(row, "detectable", numbers.score),
            cell(row, "power_delta", lambda value: score(value, 2)),
            cell(row, "tasks_delta", lambda value: f"{value:.0f}"),
        ]

    level = f"at {alpha}"
    if corrects:
        first = fraction(float(table["level_first_step"].iloc[0]))
        level = f"at {first}, which the correction asks of a pair that passes alone (raw: at {alpha})"
    caption = (
        f"What the two-sided signed-rank test can show with {n} tasks ({table['type'].iloc[0]}), {level}. Smallest p:"
        " that any scores could reach, corrected. SD: of the differences over tasks. Detectable: the smallest mean"
        f" difference found with a power of .8. Power: the chance to find a difference of {delta}; Tasks: how many give"
        f" a power of .8 (-: more than {MOST_TASKS}). {SAMPLES:,} samples of the centred differences of the pair,"
        f" shifted (seed {SEED})."
    )
    header = [PAIR, "Smallest p", "SD", "Detectable", f"Power at {delta}", "Tasks"]
    grid = Grid("power", caption, header, title=f"What {n} tasks allow")
    return filled(grid, table, cells, settings.rows_shown, f"{OF_BEST}; power.csv has all that were simulated.")
