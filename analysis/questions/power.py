"""Power of the number of tasks: attainable p, power, detectable difference and tasks needed, pair by pair."""

import math
from typing import Any

import pandas as pd

from analysis.grids.formats import fraction, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material
from analysis.settings import Settings
from analysis.statistics.correction import passes
from analysis.statistics.power import LEAST_TASKS, MOST_TASKS, SAMPLES, SEED, Shifted, detectable, power, tasks_needed

PLACE = 110
METHODS = (
    "The power to detect the observed difference and one of {delta:g}, and the number of tasks needed, were simulated"
    " from each pair's own differences [@efron1993]."
)

MOST_PAIRS = 45  # all pairs of ten designs: with more, only the first are simulated, and only on the last block
HUGE, FEW = 1000, 10  # of more than 1,000 pairs only the first ten
EFFECTS = ("observed", "delta")
LEVELS = ("", "_first_step")  # alpha itself, and alpha / family: what Holm asks of the smallest p


def answer(material: Material) -> Answer:
    """Return the table of power for all tasks together; the csv holds every task type too."""
    table = power_table(material)
    last = table[table["type"] == list(material.blocks)[-1]].reset_index(drop=True)
    total = len(material.pairs) // len(material.blocks)
    return Answer(
        "power",
        methods=[METHODS.format(**vars(material.settings))],
        grids=[power_grid(last, material.settings)],
        frames={"power": table},
        notes=_restricted(total),
    )


def power_table(material: Material) -> pd.DataFrame:
    """Return one row a (type, pair): `p_min` and its correction, spread, power, tasks needed, detectable difference.

    `power_observed` is at alpha, `power_observed_first_step` at alpha / family; `delta` is the stated difference.
    `tasks_*` is the number of tasks with a power of .8, empty beyond 500; what needs a spread is empty below five
    tasks.
    """
    pairs = material.pairs
    if len(pairs) > MOST_PAIRS * len(material.blocks):
        first = _simulated_of(len(pairs) // len(material.blocks))
        pairs = pairs[pairs["type"] == list(material.blocks)[-1]].head(first)
    matrix, settings = material.matrix, material.settings
    rows = []
    for row in pairs.to_dict("records"):
        tasks = material.blocks[row["type"]]
        pair = Shifted((matrix.loc[tasks, row["second"]] - matrix.loc[tasks, row["first"]]).to_numpy(dtype=float))
        rows.append(_known(row, settings) | _simulated(pair, row["family_size"], settings))
    return pd.DataFrame(rows)


def _simulated_of(total: int) -> int:
    return total if total <= MOST_PAIRS else FEW if total > HUGE else MOST_PAIRS


def _known(row: dict[Any, Any], settings: Settings) -> dict[str, Any]:
    names = ("type", "first", "second", "n_pairs", "n_zero", "difference", "p", "p_min", "p_min_adjusted", "reachable")
    kept = {name: row[name] for name in names}
    kept["n_tasks"] = kept.pop("n_pairs")
    return kept | {"level_first_step": settings.alpha / row["family_size"], "delta": settings.delta}


def _simulated(pair: Shifted, family: int, settings: Settings) -> dict[str, float]:
    enough = len(pair.differences) >= LEAST_TASKS
    found = {"sd": pair.spread, "skewness": pair.skewness if enough else float("nan")}
    direction = -1.0 if pair.mean < 0 else 1.0
    effects = dict(zip(EFFECTS, (pair.mean, direction * settings.delta), strict=True))
    for ending, level in zip(LEVELS, (settings.alpha, settings.alpha / family), strict=True):
        found[f"detectable{ending}"] = detectable(pair, level) if enough else float("nan")
        for name, effect in effects.items():
            values = pair.at(effect, settings.decimals) if enough else None
            found[f"power_{name}{ending}"] = (
                float("nan") if values is None else power(values, level, len(pair.differences))
            )
            found[f"tasks_{name}{ending}"] = float("nan") if values is None else tasks_needed(values, level)
    return found


def power_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row a pair. Where a correction is made, each cell has the value at its first step, then that at alpha."""
    shown = table.head(settings.rows_shown)
    rows = [_row(row, settings) for _, row in shown.iterrows()]
    n = int(table["n_tasks"].iloc[0])
    header = ["Pair (second - first)", "Smallest p", "SD", "Detectable", "Observed", "Power", "Tasks"]
    header += [f"Power at {score(settings.delta, 3).rstrip('0')}", "Tasks"]
    rest = f"The first {len(rows)} of {len(table)} pairs; power.csv has all." if len(rows) < len(table) else ""
    return Grid("power", _caption(table, n, settings), header, rows, rest=rest, title=f"What {n} tasks allow")


def _row(row: pd.Series, settings: Settings) -> list[Cell]:
    def cell(name: str, show: Any) -> Cell:
        raw = show(row[name])
        if settings.correction == "none":
            return Cell(raw)
        return Cell(show(row[f"{name}_first_step"]), below=(f"raw {raw}",))

    floor = row["p_min" if settings.correction == "none" else "p_min_adjusted"]
    mark = "" if passes(floor, settings.alpha) else "n.a."
    smallest = Cell(f"{mark}: p >= {fraction(floor)}" if mark else fraction(floor))
    return [
        Cell(f"{row['second']} - {row['first']}"),
        smallest,
        Cell(score(row["sd"])),
        cell("detectable", lambda v: "-" if math.isnan(v) else score(v)),
        Cell(signed(row["difference"])),
        cell("power_observed", _power),
        cell("tasks_observed", lambda v: _tasks(v, row["n_tasks"] >= LEAST_TASKS)),
        cell("power_delta", _power),
        cell("tasks_delta", lambda v: _tasks(v, row["n_tasks"] >= LEAST_TASKS)),
    ]


def _power(value: float) -> str:
    return "-" if math.isnan(value) else score(value, 2)


def _tasks(value: float, simulated: bool) -> str:
    if not simulated:
        return "-"
    return f"> {MOST_TASKS}" if math.isnan(value) else f"{value:.0f}"


def _caption(table: pd.DataFrame, n: int, settings: Settings) -> str:
    alpha, kind = fraction(settings.alpha), table["type"].iloc[0]
    stood = (
        f"; {n:,} tasks are stood for by {MOST_TASKS} means of neighbouring differences, with their spread, and beyond"
        f" {MOST_TASKS} tasks the test is that by the normal curve"
        if n > MOST_TASKS
        else ""
    )
    level = f"at {alpha}"
    if settings.correction != "none":
        first = fraction(float(table["level_first_step"].iloc[0]))
        level = f"at {first}, which the correction asks of a pair that passes alone (raw: at {alpha})"
    return (
        f"What the two-sided signed-rank test can show with {n} tasks ({kind}), {level}. Smallest p: the"
        " smallest that any scores could reach, corrected as the tests are; n.a.: it is above alpha, so no result can"
        " pass. SD: of the differences over tasks. Detectable: the smallest mean difference found with a power of .8."
        f" Power: the chance to find the observed difference, and a difference of {score(settings.delta, 3)}; Tasks:"
        f" how many give a power of .8. {SAMPLES:,} samples of the centred differences of the pair, shifted (seed"
        f" {SEED}){stood}. Power at the observed difference restates p; plan with the stated one."
    )


def _restricted(total: int) -> list[str]:
    if total <= MOST_PAIRS:
        return []
    return [
        f"Power was simulated for the first {_simulated_of(total)} of {total:,} pairs, on all tasks together only;"
        " choose fewer designs with models= or against= for the others and for the task types."
    ]
