"""Number of tasks that carry a told difference: one task left out, and the fewest without which the verdict turns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import equals, fraction
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import BETWEEN, compare_pairs, seed_cube
from analysis.questions.question import Answer, Material
from analysis.questions.tables import PAIR, Row, after_correction, claims, filled, pair_name, tasks_text
from analysis.statistics.arrays import Bools, Floats, rounded
from analysis.statistics.correction import RESAMPLED
from analysis.statistics.influence import carriers
from analysis.statistics.seeds import FEWEST_SEEDS
from analysis.statistics.wilcoxon import EXACT_UP_TO

PLACE = 72
MOST_PAIRS = 45  # all pairs of ten designs
MOST_TASKS = 10  # left out of one pair
SAID = 3  # tasks: where at most so many carry a difference, the verdict says so
METHODS = (
    "Every comparison that was told was made again without each single task, and without the tasks with the largest"
    " differences in its favour until it turned [@broderick2020]."
)


def answer(material: Material) -> Answer | None:
    """Return the table `influence` of the pairs told of the designs, with too few seeds by p alone."""
    pairs, settings = material.pairs_on(material.last), material.settings
    shown = np.flatnonzero(_shown(pairs))
    if not len(shown) or len(material.matrix) < 2:
        return None
    if len(pairs) > MOST_PAIRS or len(material.matrix) > EXACT_UP_TO or settings.correction == RESAMPLED:
        few = f"up to {MOST_PAIRS} pairs and {EXACT_UP_TO:,} tasks, and a correction without resampling"
        return Answer("influence", notes=[f"Which tasks carry a difference is worked out for {few}."], aside=True)
    without = _Without(material)
    table = pd.DataFrame([_row(material, place, without) for place in shown.tolist()])
    return Answer(
        "influence",
        grids=[_grid(table, material)],
        frames={"influence": table},
        methods=[METHODS],
        about={(row["first"], row["second"]): _sentence(row) for row in table.to_dict("records")},
    )


def _shown(pairs: pd.DataFrame) -> Bools:
    """Tell which pairs are told of the designs, or where seeds are too few differ in these runs."""
    return np.where(pairs["n_seeds"] >= FEWEST_SEEDS, pairs["told"], pairs["significant"]).astype(bool)


def _larger_p(pairs: pd.DataFrame) -> Floats:
    """Return the corrected p that decides: over tasks, or where it is larger over tasks and seeds."""
    return pairs[["p_adjusted", "p_seeds_adjusted"]].max(axis=1).to_numpy()  # nan where seeds are too few


@dataclass(frozen=True)
class _Again:
    """The pairs of the last block compared without some tasks, [P] each: whether it is `_shown`, who is ahead by the
    ranks (1, 0, -1), the p that decides, and whether any p could pass."""

    shown: Bools
    side: Floats
    p: Floats
    within_reach: Bools


class _Without:
    """The pairs of the last block, compared and corrected again without some tasks: once for the same ones."""

    def __init__(self, material: Material) -> None:
        self.material, self.cube = material, seed_cube(material.frame, material.matrix)
        self._pairs: dict[frozenset[str], _Again] = {}

    def __call__(self, tasks: list[str]) -> _Again:
        """Return what `compare_pairs` says without these tasks."""
        out, material = frozenset(tasks), self.material
        if out not in self._pairs:
            kept = {kind: [task for task in block if task not in out] for kind, block in material.blocks.items()}
            alone = material.settings.family == "type"
            blocks = {kind: block for kind, block in kept.items() if block and (kind == material.last or not alone)}
            words = material.matrix, blocks, material.settings, material.control
            pairs = compare_pairs(*words, cube=self.cube, sizes=False)
            pairs = pairs[pairs["type"] == material.last]
            side = np.sign(pairs["w_plus"] - pairs["w_minus"]).to_numpy(dtype=np.float64)
            reach = (pairs["reachable"] == "yes").to_numpy(dtype=np.bool_)
            self._pairs[out] = _Again(_shown(pairs), side, _larger_p(pairs), reach)
        return self._pairs[out]


def _row(material: Material, place: int, without: _Without) -> dict[str, Any]:
    """Return the row of one pair, by its place among those of the last block."""
    pair, tasks = material.pairs_on(material.last).iloc[[place]], material.blocks[material.last]
    differences = rounded(material.differences(material.last)[place], material.settings.decimals)
    side = float(pair["ahead"].iloc[0])

    def turned(places: list[int]) -> bool:
        again = without([tasks[k] for k in places])
        return bool(again.side[place] != side or not again.shown[place])

    alone = [k for k in range(len(tasks)) if turned([k])]
    p_without = [float(without([task]).p[place]) for task in tasks]
    most = max(alone or range(len(tasks)), key=lambda k: (p_without[k], differences[k] * side))
    carried = [most] if alone else carriers(differences, side, turned, MOST_TASKS)
    row = {**pair[["first", "second", "n_seeds", "hodges_lehmann"]].iloc[0], "p": _larger_p(pair)[0]}
    row |= {"task_of_most": tasks[most], "p_without_one": p_without[most], "n_alone": len(alone)}
    row |= {"n_carriers": len(carried) or np.nan, "carriers": BETWEEN.join(tasks[k] for k in carried)}
    row |= {"n_tasks": len(tasks), "n_differing": np.count_nonzero(differences)}
    row |= {"p_without_carriers": np.nan, "within_reach": True}
    if carried:
        fewer = without([tasks[k] for k in carried])
        row |= {"p_without_carriers": float(fewer.p[place]), "within_reach": bool(fewer.within_reach[place])}
    return row


def _sentence(row: Row) -> str:
    """Say that few tasks carry the difference, or that so few would show none; "" where it takes more."""
    if not row["n_carriers"] <= SAID:
        return ""
    if not row["within_reach"]:
        differing = row["n_differing"]  # a task on which they do not costs no reach
        of = f"the {differing} tasks{' on which the two differ' if differing < row['n_tasks'] else ''}"
        without = f"Without any {row['n_carriers']:.0f} of {of}"
        return f"{without} no result could pass, since the smallest p that is possible would be above the level."
    tasks, p = row["carriers"].split(BETWEEN), equals(row["p_without_carriers"])
    many, told = row["n_seeds"] >= FEWEST_SEEDS, "it is not told"
    if row["n_alone"] > 1:
        which = f"without any one of {row['n_alone']} of the {row['n_tasks']} {told if many else 'it does not pass'}"
        return f"The lead rests on single tasks: {which} (without {tasks[0]} p {p}, the largest)."
    which = "this task" if len(tasks) == 1 else f"these {len(tasks)} tasks"
    without = f"without {'it' if len(tasks) == 1 else 'them'} {f'{told}: ' if many else ''}p {p}"
    return f"The lead rests on {which} of {row['n_tasks']}: {listed(tasks)}; {without}."


def _grid(table: pd.DataFrame, material: Material) -> Grid:
    def cells(row: Row) -> list[Cell]:
        without = Cell(fraction(row["p_without_one"]), below=(row["task_of_most"],))
        carried = Cell(f"> {MOST_TASKS}")
        if row["carriers"]:
            names = row["carriers"].split(BETWEEN)
            below = tuple(names) if len(names) <= SAID else ()
            below += (f"or one of {row['n_alone'] - 1} others",) if row["n_alone"] > 1 else ()
            carried = Cell(str(len(names)), below=below) if row["within_reach"] else Cell(f"any {len(names)}")
        size = settings.numbers.signed(row["hodges_lehmann"])
        return [*map(Cell, (pair_name(row), size, fraction(row["p"]))), without, carried]

    settings = material.settings
    of_runs = f"whose p is at most {fraction(settings.alpha)}"
    which = "that is told of the designs" if claims(table) else of_runs
    if claims(table) and (table["n_seeds"] < FEWEST_SEEDS).any():
        which += f", or {of_runs} where seeds are too few for that"
    over = tasks_text(material.last, len(material.blocks[material.last]))
    caption = (
        f"Which of {over} carry each difference {which}. p:{after_correction(settings)} over tasks, or over tasks and"
        " seeds where that is larger, with all tasks, and the largest without one of them. Rests on: how many tasks"
        " must go until that is so no more when all pairs are compared again, any one or several of the largest"
        f" differences in favour of the design ahead; named up to {SAID}. They are chosen by"
        " the scores, so that no p without them is a test. Any: without any so many tasks on which the two differ no"
        " result could pass."
    )
    header = [PAIR, "HL", "p", "p without one task", "Rests on"]
    grid = Grid("influence", caption, header, title="What the differences rest on")
    return filled(grid, table, cells, settings.rows_shown, "pairs; influence.csv has all.")
