"""Every pair of designs with the seeds as a second source of chance: intervals over tasks, and over tasks and seeds."""

import numpy as np
import pandas as pd

from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import seed_cube
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, claims, filled, pair_name, tasks_text
from analysis.settings import Settings
from analysis.statistics.arrays import Ints
from analysis.statistics.seeds import FEWEST_SEEDS, reach_of_seeds

PLACE = 60


def answer(material: Material) -> Answer | None:
    """Return the table of pairs with three seeds or more of each design; None where there are none."""
    if not claims(material.pairs):
        return None
    table = seed_intervals(material)
    last = table[table["type"] == material.last]
    grid = _grid(last.iloc[material.leading(last)], material.settings)
    return Answer("seeds", grids=[grid], frames={"seeds": table}, notes=_lost(last))


def seed_intervals(material: Material) -> pd.DataFrame:
    """Return one row per (type, pair) that has the seeds of a claim.

    `difference`: mean over tasks and these runs; `low_over_tasks`, `high_over_tasks`: Student's interval over tasks;
    `low_by_model`, `high_by_model`: over tasks and seeds, both random; `low_together`, `high_together`: the same for
    all pairs corrected together (Bonferroni); `seeds_agreeing`: seeds whose mean difference has the sign shown.
    """
    settings, pairs = material.settings, material.pairs
    pairs = pairs[pairs["n_seeds"] >= FEWEST_SEEDS].reset_index(drop=True)
    family = 1 if settings.correction == "none" else int(material.pairs["family_size"].iloc[0])
    mean, table = pairs["mean_seeds"], pairs[["type", "first", "second", "n_pairs", "n_seeds", "told"]]
    table = table.rename(columns={"n_pairs": "n_tasks"}).assign(difference=mean)
    columns = {"low_over_tasks": pairs["mean_low"], "high_over_tasks": pairs["mean_high"], "family_size": family}
    for name, level in (("by_model", settings.alpha), ("together", settings.alpha / family)):
        reach = reach_of_seeds(pairs, 1 - level)
        columns |= {f"low_{name}": mean - reach, f"high_{name}": mean + reach}
    return table.assign(**columns, seeds_agreeing=_agreeing(pairs, material))


def _agreeing(pairs: pd.DataFrame, material: Material) -> Ints:
    """Return [rows]: the seeds that both designs have whose mean difference has the sign of the whole."""
    agreeing = []
    for kind, rows in pairs.groupby("type", sort=False):
        cube = seed_cube(material.frame, material.matrix.loc[material.blocks[str(kind)]])
        first, second = (material.matrix.columns.get_indexer(rows[side]) for side in ("first", "second"))
        by_seed = (cube[second] - cube[first]).mean(axis=1)  # nan where either lacks the seed
        agreeing.append((np.sign(by_seed) == np.sign(rows["mean_seeds"].to_numpy())[:, None]).sum(axis=1))
    return np.concatenate(agreeing)


def _lost(rows: pd.DataFrame) -> list[str]:
    """Name the differences that the seeds leave open."""
    clear = rows["low_over_tasks"] * rows["high_over_tasks"] > 0
    lost = rows[clear & (rows["low_by_model"] * rows["high_by_model"] <= 0) & ~rows["told"]]
    names = listed(map(pair_name, lost.to_dict("records")), 4)
    note = (
        f"For the designs trained again with other seeds {len(lost)} of {int(clear.sum())} differences whose interval"
        f" over tasks leaves out 0 are not shown, since the interval over tasks and seeds holds 0: {names}."
    )
    return [note] if len(lost) else []


def _grid(rows: pd.DataFrame, settings: Settings) -> Grid:
    family, level, numbers = rows["family_size"].iloc[0], percent(settings.alpha), settings.numbers
    intervals = {"over_tasks": f"{level} tasks", "by_model": f"{level} tasks and seeds"}
    intervals |= {"together": f"{level} of all {family:,} together"} if family > 1 else {}

    def cells(row: Row) -> list[Cell]:
        ends = [numbers.interval(row[f"low_{name}"], row[f"high_{name}"]) for name in intervals]
        agree = f"{row['seeds_agreeing']} of {row['n_seeds']}"
        return list(map(Cell, [pair_name(row), numbers.signed(row["difference"]), *ends, agree]))

    over = tasks_text(rows["type"].iloc[0], rows["n_tasks"].iloc[0], "", "all ")
    caption = (
        f"Mean differences over {over} and the seeds of both with {level} intervals: Student's t over tasks; over tasks"
        " and seeds by the two-way random model with Satterthwaite's degrees of freedom, the variance of seeds as the"
        " pair's own or drawn towards the mean of all pairs, whichever is wider; the last for all pairs together"
        " (Bonferroni). Seeds agree: seeds whose mean difference has the sign shown."
    )
    header = [PAIR, "Difference", *intervals.values(), "Seeds agree"]
    grid = Grid("seeds", caption, header, title="Pairs over tasks and seeds")
    return filled(grid, rows, cells, settings.rows_shown, f"{OF_BEST}; seeds.csv has all.")
