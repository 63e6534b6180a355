"""Power of the number of tasks: attainable p, power, detectable difference and tasks needed, pair by pair."""

import math
from collections.abc import Callable

import pandas as pd

from analysis.grids.formats import fraction, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, filled, pair_name
from analysis.settings import Settings
from analysis.statistics.correction import RESAMPLED, passes
from analysis.statistics.power import LEAST_TASKS, MOST_TASKS, SAMPLES, SEED, Shifted, detectable, power, tasks_needed

PLACE = 110
METHODS = (
    "The power to detect the observed difference and one of {delta}, and the number of tasks needed, were simulated"
    " from each pair's own differences [@efron1993]."
)

MOST_PAIRS = 45  # all pairs of ten designs: with more, only the first are simulated, and only on the last block
KEPT = ("type", "first", "second", "n_zero", "difference", "p", "p_min", "p_min_adjusted", "reachable")  # of the pairs
HUGE, FEW = 1000, 10  # of more than 1,000 pairs only the first ten
FIRST_STEP = "_first_step"  # ends the columns at alpha / family, which Holm asks of the smallest p


def answer(material: Material) -> Answer:
    """Return the table of power for all tasks together; the csv holds every task type too."""
    settings, table = material.settings, power_table(material)
    last = table[table["type"] == material.last]
    total = len(material.pairs) // len(material.blocks)
    notes = []
    if total > MOST_PAIRS:
        notes.append(
            f"Power was simulated for the first {_simulated_of(total)} of {total:,} {OF_BEST}, on all tasks together"
            " only; choose fewer designs with models= or against= for the others and for the task types."
        )
    return Answer(
        "power",
        methods=[METHODS.format(delta=settings.numbers.margin(settings.delta))],
        grids=[power_grid(last.iloc[material.leading(last)], settings)],
        frames={"power": table},
        notes=notes,
    )


def power_table(material: Material) -> pd.DataFrame:
    """Return one row per (type, pair): `p_min` and its correction, spread, power, tasks needed, detectable difference.

    `power_observed` is at alpha, `power_observed_first_step` at alpha / family; `delta` is the stated difference.
    `tasks_*` is the number of tasks with a power of .8, empty beyond 500; what needs a spread is empty below five
    tasks.
    """
    pairs = material.pairs
    if len(pairs) > MOST_PAIRS * len(material.blocks):
        pairs = material.pairs_on(material.last)
        pairs = pairs.iloc[material.leading(pairs)[: _simulated_of(len(pairs))]]
    matrix, settings, rows = material.matrix, material.settings, []
    for row in pairs.to_dict("records"):
        tasks = material.blocks[row["type"]]
        pair = Shifted((matrix.loc[tasks, row["second"]] - matrix.loc[tasks, row["first"]]).to_numpy(dtype=float))
        known = {name: row[name] for name in KEPT} | {"n_tasks": len(tasks)}
        known |= {"level_first_step": settings.alpha / row["family_size"], "delta": settings.delta}
        rows.append(known | _simulated(pair, row["family_size"], settings))
    return pd.DataFrame(rows)


def _simulated_of(total: int) -> int:
    return min(total, FEW if total > HUGE else MOST_PAIRS)


def _simulated(pair: Shifted, family: int, settings: Settings) -> dict[str, float]:
    enough = len(pair.differences) >= LEAST_TASKS
    sizes = {"sd": pair.spread, "skewness": pair.skewness if enough else math.nan}
    effects = {"observed": pair.mean, "delta": -settings.delta if pair.mean < 0 else settings.delta}
    for ending, level in (("", settings.alpha), (FIRST_STEP, settings.alpha / family)):
        sizes[f"detectable{ending}"] = detectable(pair, level) if enough else math.nan
        for name, effect in effects.items():
            values = pair.at(effect, settings.decimals) if enough else None
            chance = math.nan if values is None else power(values, level, len(pair.differences))
            sizes[f"power_{name}{ending}"] = chance
            sizes[f"tasks_{name}{ending}"] = math.nan if values is None else tasks_needed(values, level)
    return sizes


def power_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row a pair. Where a correction is made, each cell has the value at its first step, then that at alpha."""
    n, corrects, numbers = int(table["n_tasks"].iloc[0]), settings.correction != "none", settings.numbers

    def cell(row: Row, name: str, show: Callable[[float], str]) -> Cell:
        raw = show(row[name])
        return Cell(show(row[f"{name}{FIRST_STEP}"]), below=(f"raw {raw}",)) if corrects else Cell(raw)

    def tasks(value: float) -> str:
        if n < LEAST_TASKS:
            return "-"
        return f"> {MOST_TASKS}" if math.isnan(value) else f"{value:.0f}"

    def cells(row: Row) -> list[Cell]:
        floor = row["p_min_adjusted" if corrects else "p_min"]
        smallest = f"{'' if passes(floor, settings.alpha) else 'n.a.: p >= '}{fraction(floor)}"
        return [
            *map(Cell, (pair_name(row), smallest, numbers.score(row["sd"]))),
            cell(row, "detectable", lambda value: "-" if math.isnan(value) else numbers.score(value)),
            Cell(numbers.signed(row["difference"])),
            cell(row, "power_observed", _chance),
            cell(row, "tasks_observed", tasks),
            cell(row, "power_delta", _chance),
            cell(row, "tasks_delta", tasks),
        ]

    stated = f"Power at {numbers.margin(settings.delta)}"
    header = [PAIR, "Smallest p", "SD", "Detectable", "Observed", "Power", "Tasks", stated, "Tasks"]
    grid = Grid("power", _caption(table, n, settings), header, title=f"What {n} tasks allow")
    return filled(grid, table, cells, settings.rows_shown, f"{OF_BEST}; power.csv has all.")


def _chance(value: float) -> str:
    return "-" if math.isnan(value) else score(value, 2)


def _caption(table: pd.DataFrame, n: int, settings: Settings) -> str:
    alpha, kind, delta = fraction(settings.alpha), table["type"].iloc[0], settings.numbers.margin(settings.delta)
    stood = ""
    if n > MOST_TASKS:
        stood = (
            f"; {n:,} tasks are stood for by {MOST_TASKS} means of neighbouring differences, with their spread, and"
            f" beyond {MOST_TASKS} tasks the test is that by the normal curve"
        )
    level = f"at {alpha}"
    if settings.correction != "none":
        first = fraction(float(table["level_first_step"].iloc[0]))
        level = f"at {first}, which the correction asks of a pair that passes alone (raw: at {alpha})"
        if settings.correction == RESAMPLED:
            level = f"at {first}, Bonferroni's, which resampling asks less than (raw: at {alpha})"
    return (
        f"What the two-sided signed-rank test can show with {n} tasks ({kind}), {level}. Smallest p: the"
        " smallest that any scores could reach, corrected as the tests are; n.a.: it is above alpha, so no result can"
        " pass. SD: of the differences over tasks. Detectable: the smallest mean difference found with a power of .8."
        f" Power: the chance to find the observed difference, and a difference of {delta}; Tasks:"
        f" how many give a power of .8. {SAMPLES:,} samples of the centred differences of the pair, shifted (seed"
        f" {SEED}){stood}. Power at the observed difference restates p; plan with the stated one."
    )
