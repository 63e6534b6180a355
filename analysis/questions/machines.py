"""The same designs and seeds on several machines: what a machine changes beside a seed, and whether verdicts stay.

Also what `python -m analysis.machines` prints.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.control.machines import Machines
from analysis.grids.formats import percent, score
from analysis.grids.grid import Cell, Grid
from analysis.names import by_number, listed
from analysis.questions.compared_pairs import ALL, compare_pairs
from analysis.questions.equivalence import EQUIVALENT, NOT_TOLD, TOLD, equivalence_table, within
from analysis.questions.means import seed_means
from analysis.questions.question import Answer, Material
from analysis.questions.same_design import ANY
from analysis.questions.tables import PAIR, Row, filled, marked_cell, pair_name, star_legend
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from analysis.statistics.seeds import FEWEST_SEEDS
from analysis.statistics.spreads import Spread, pooled, ratio, spread

PLACE = 64
OVER = ("machines", "seeds")
LIKE = 2  # a machine's change is like a seed's where the interval of their ratio lies within this factor
FROM_PAIRS = ["first", "second", "n_seeds", "difference", "p", "p_adjusted", "p_min", "p_min_adjusted", "reachable"]
FROM_PAIRS += ["p_seeds", "p_seeds_adjusted", "told"]
METHODS = (
    "The same seeds were trained on several machines: spreads of a run's mean over machines and over seeds with"
    " Satterthwaite's degrees of freedom [@satterthwaite1946], their ratio with an interval by F."
)


def answer(material: Material) -> Answer | None:
    """Return the tables of the machines that `machines=` names; None where it names none."""
    if material.machines is None:
        return None
    return answer_of(material.machines, material.control, material.settings)


def answer_of(machines: Machines, control: str, settings: Settings) -> Answer:
    """Return the spreads, and where designs are several the verdicts; the first note is what all come to."""
    spreads = spread_table(run_means(machines.frames, machines.labels), settings)
    pairs = pair_table(_materials(machines, control, settings))
    over = f"all {len(machines.tasks)} tasks"
    grids = [spread_grid(spreads, over, len(machines.names), settings)]
    grids += [] if pairs.empty else [pair_machine_grid(pairs, over, machines.names, settings)]
    return Answer(
        "machines",
        "Another machine",
        grids,
        frames={"machines": spreads, "machine_pairs": pairs},
        notes=list(dict.fromkeys([conclusion(pairs, spreads, machines.names, settings), *machines.notes])),
        about={(first, second): _of_pair(rows) for (first, second), rows in pairs.groupby(["first", "second"])},
        methods=[METHODS],
        of_scores=False,  # the captions say it themselves
    )


def _of_pair(rows: pd.DataFrame) -> str:
    """Return whether the pair's verdict stays. rows: those of `pair_table`, one per machine."""
    if rows["verdict"].iloc[0] == "no claim":
        return ""
    if rows["same"].all():
        return f"Its verdict is the same on {_all(len(rows))} machines."
    return f"Its verdict changes with the machine: {_where(rows)}."


def _all(machines: int) -> str:
    return "both" if machines == 2 else f"all {machines}"


def _where(rows: pd.DataFrame) -> str:
    return "; ".join(f"{verdict} on {listed(on)}" for verdict, on in rows.groupby("verdict", sort=False)["machine"])


def _materials(machines: Machines, control: str, settings: Settings) -> dict[str, Material]:
    """Return machine -> its scores and the tests of its pairs, over all tasks at once; {} where one design is alone."""
    of_machines: dict[str, Material] = {}
    if len(machines.labels) < 2:
        return of_machines
    tasks, blocks = machines.tasks, {ALL: machines.tasks}
    for name, frame in machines.frames.items():
        matrix = seed_means(frame, machines.labels, tasks)
        pairs = compare_pairs(matrix, blocks, settings, control, frame, sizes=False)
        of_machines[name] = Material(settings, machines.designs[name], control, blocks, blocks, frame, matrix, pairs)
    return of_machines


def run_means(frames: Mapping[str, pd.DataFrame], designs: list[str]) -> dict[str, Floats]:
    """Return design -> the mean over tasks of its runs, [seeds, machines]."""
    every = pd.concat(frames, names=["machine"]).groupby(["design", "seed", "machine"])["score"].mean()
    runs = every.unstack("machine")[list(frames)]
    return {design: runs.loc[design].loc[by_number(runs.loc[design].index)].to_numpy() for design in designs}


def spread_table(runs: Mapping[str, Floats], settings: Settings) -> pd.DataFrame:
    """Return one row per design, first all together: standard deviations of a run's mean, their ratio, and a word.

    A design that is alike with every seed is one run, which no word is said of; it is not among all. runs: as
    `run_means` returns them. `sd_machines`: over machines at one seed; `sd_seeds`: over seeds on one machine; `df_`
    before each name: their degrees of freedom. `ratio` with the ends `low` and `high` of its interval.
    """
    both = {design: (spread(table), spread(table.T)) for design, table in runs.items()}
    copied = {design for design, table in runs.items() if len(table) > 1 and not np.ptp(table, axis=0).any()}
    seeds = {design: len(table) if design not in copied else 1 for design, table in runs.items()}
    several = [design for design in runs if design not in copied] or list(runs)
    if len(both) > 1:
        over_machines, over_seeds = (pooled(axis) for axis in zip(*map(both.get, several), strict=True))
        fewest = min(len(runs[design]) for design in several)
        both, seeds = {ANY: (over_machines, over_seeds), **both}, {ANY: fewest, **seeds}
    return pd.DataFrame([_spread_row(design, seeds[design], *both[design], settings) for design in both])


def _spread_row(design: str, seeds: int, machines: Spread, of_seeds: Spread, settings: Settings) -> Row:
    row: Row = {"design": design, "n_seeds": seeds}
    row |= {"sd_machines": machines.sd, "df_machines": machines.df, "sd_seeds": of_seeds.sd, "df_seeds": of_seeds.df}
    value, low, high = ratio(machines, of_seeds, 1 - settings.alpha)
    word = "smaller" if high < 1 else "larger" if low > 1 else "like" if low * LIKE >= 1 >= high / LIKE else NOT_TOLD
    return row | {"ratio": value, "low": low, "high": high, "word": word if seeds >= FEWEST_SEEDS else "no claim"}


def pair_table(materials: Mapping[str, Material]) -> pd.DataFrame:
    """Return one row per (pair, machine), a pair's machines together: the tests, and whether the `verdict` is the same.

    materials: machine -> the same designs, seeds and tasks in one block. `verdict`: told apart with the design that is
    ahead, equivalent within the margin, not told; "no claim" below FEWEST_SEEDS. `same`: on all machines.
    """
    parts = [pd.DataFrame(columns=[*FROM_PAIRS, "machine", "verdict"])]
    for name, material in materials.items():
        pairs, outcome = material.pairs, equivalence_table(material)["outcome"].to_numpy()
        ahead = np.where(pairs["difference"] > 0, pairs["second"], pairs["first"])
        words = np.where(outcome == EQUIVALENT, within(material.settings), outcome)
        words = np.where(outcome == TOLD, f"{TOLD}, " + ahead.astype(object) + " ahead", words)
        words = np.where(pairs["n_seeds"] < FEWEST_SEEDS, "no claim", words)
        parts.append(pairs[FROM_PAIRS].assign(machine=name, verdict=words))
    table = pd.concat(parts[1:] or parts).sort_index(kind="stable")
    unclaimed = table["verdict"].eq("no claim").groupby([table["first"], table["second"]]).transform("any")
    table.loc[unclaimed, "verdict"] = "no claim"  # nothing stays or changes where one machine has too few seeds
    return table.assign(same=table.groupby(["first", "second"])["verdict"].transform("nunique") == 1)


def conclusion(pairs: pd.DataFrame, spreads: pd.DataFrame, machines: list[str], settings: Settings) -> str:
    """Return what all come to: whether verdicts stay, and how large a machine's change is beside a seed's."""
    finding, every = _of_verdicts(pairs[pairs["verdict"] != "no claim"], machines, settings), spreads.iloc[0]
    if every["n_seeds"] < FEWEST_SEEDS:
        return finding or f"Nothing is claimed: that takes {FEWEST_SEEDS} seeds or more of each design on each machine."
    if np.isnan(every["ratio"]):
        alike = "Each design scores alike with every seed, so there is no spread to hold a machine's against."
        return " ".join(filter(None, [finding, alike]))
    words = {NOT_TOLD: "not told to be smaller or larger", "like": f"like it, within a factor of {LIKE}"}
    of_machine, of_seed = (_finer(settings, every[f"sd_{name}"]) for name in OVER)
    moved = (
        f"Another machine moves the mean of a run by a standard deviation of {of_machine}, another seed by {of_seed};"
        f" the first is {words.get(every['word'], every['word'])} (ratio {score(every['ratio'], 2)},"
        f" {percent(settings.alpha)} interval {_ends(every)})."
    )
    return " ".join(filter(None, [finding, moved]))


def _of_verdicts(pairs: pd.DataFrame, machines: list[str], settings: Settings) -> str:
    if pairs.empty:
        return ""
    first = pairs[pairs["machine"] == machines[0]]
    changed = first[~first["same"]].to_dict("records")
    count, n = f"{len(first)} pair{'s' if len(first) > 1 else ''}", len(machines)
    if not changed:
        told = int(first["verdict"].str.startswith(TOLD).sum())
        alike = int((first["verdict"] == within(settings)).sum())
        rest = f"{TOLD} {told}, {within(settings)} {alike}, {NOT_TOLD} {len(first) - told - alike}"
        return f"The verdict is the same on {_all(n)} machines ({count}: {rest})."
    texts = []
    for row in changed:
        of_pair = pairs[(pairs["first"] == row["first"]) & (pairs["second"] == row["second"])]
        texts.append(f"{pair_name(row)} ({_where(of_pair)})")
    return f"The verdict changes with the machine for {len(changed)} of {count}: {listed(texts, 10)}."


def _finer(settings: Settings, sd: float) -> str:
    return replace(settings.numbers, digits=settings.numbers.digits + 1).score(sd)


def _ends(row: Any) -> str:
    return f"{score(row['low'], 2)} to {score(row['high'], 2)}"


def spread_grid(table: pd.DataFrame, over: str, machines: int, settings: Settings) -> Grid:
    """Return the table of `spread_table`. over: "all 56 tasks"."""

    def cells(row: Row) -> list[Cell]:
        both = [Cell(_finer(settings, row[f"sd_{n}"]), below=(f"df {row[f'df_{n}']:.1f}",)) for n in OVER]
        of_ratio = Cell("-") if np.isnan(row["ratio"]) else Cell(score(row["ratio"], 2), below=(_ends(row),))
        return [Cell(row["design"]), Cell(str(row["n_seeds"])), *both, of_ratio, Cell(row["word"])]

    caption = (
        f"Standard deviations of a run's mean over {over}: over {machines} machines at one seed, and over seeds on one"
        " machine, with degrees of freedom (Satterthwaite). Ratio: the first by the second, with its"
        f" {percent(settings.alpha)} interval (F). Smaller, larger: the interval lies below 1, above it; like: within"
        f" a factor of {LIKE}; else {NOT_TOLD}. The row of all designs takes them to be independent. No correction."
        f"{settings.numbers.said}"
    )
    header = ["Design", "Seeds", *(f"SD over {name}" for name in OVER), "Ratio", "A machine's is"]
    grid = Grid("machines", caption, header, title="A machine beside a seed")
    return filled(grid, table, cells, settings.rows_shown, "rows; machines.csv has all.")


def pair_machine_grid(table: pd.DataFrame, over: str, machines: list[str], settings: Settings) -> Grid:
    """Return the table of `pair_table`: one row per pair, one column per machine."""
    of_pairs, numbers = table[table["machine"] == machines[0]].reset_index(drop=True), settings.numbers
    by_machine = {(row["first"], row["second"], row["machine"]): row for row in table.to_dict("records")}

    def cells(pair: Row) -> list[Cell]:
        rows = [by_machine[pair["first"], pair["second"], name] for name in machines]
        tests = [marked_cell(numbers.signed(row["difference"]), row, settings, size=row["verdict"]) for row in rows]
        same = "yes" if pair["same"] else "no"
        return [Cell(pair_name(pair)), *tests, Cell("no claim" if pair["verdict"] == "no claim" else same)]

    caption = (
        f"Mean differences over {over} on each machine; below them the verdict, p of the signed-rank test over tasks"
        f" and p over tasks and seeds, corrected over the pairs of one machine. {star_legend(table, settings)}."
        f"{settings.numbers.said}"
    )
    grid = Grid("machine-pairs", caption, [PAIR, *machines, "Same verdict"], title="Verdicts by machine")
    return filled(grid, of_pairs, cells, settings.rows_shown, "pairs; machine_pairs.csv has all.")
