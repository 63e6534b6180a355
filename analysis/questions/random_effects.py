"""The spread of differences over tasks beyond the noise of the tasks' items, and their mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.names import by_number, listed
from analysis.questions.compared_pairs import corrected, pair_places
from analysis.questions.items import MOST_PAIRS
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, after_correction, filled, p_cell, pair_name, tasks_text
from analysis.scores.items import Items
from analysis.settings import Settings
from analysis.statistics.arrays import Floats, Ints
from analysis.statistics.items import ItemVariances, item_variances
from analysis.statistics.random_effects import LEAST, random_effects
from analysis.statistics.seed_errors import table_mean_squares

PLACE = 102
METHODS = (
    "Tasks were combined by a random-effects model, with variances within tasks from their items, between tasks by"
    " Paule and Mandel [@paule1982], the interval of Hartung and Knapp [@hartung2001] and Welch's test of homogeneity"
    " [@welch1951]."
)
FEWEST_TASKS = 3
SHARED = ["p_min", "reachable", "told", "significant", "p_seeds_adjusted"]  # of `corrected`, without a meaning here


@dataclass(frozen=True)
class _Task:
    """One task: differences [P, seeds], the variances of their means over seeds, the number of items, the seeds."""

    differences: Floats
    of_items: ItemVariances
    items: int
    seeds: list[str]


def answer(material: Material) -> Answer | None:
    """Return the table `random_effects` of the tasks with items of all designs; None with fewer than three tasks."""
    have = {design for items in material.items for design, _ in items.values}
    designs = [design for design in material.designs if design in have]
    first, second = pair_places(designs, material.control)
    if not 0 < len(first) <= MOST_PAIRS:  # the question `items` says so
        return None
    measured = _measured(material, designs, first, second)
    blocks = {kind: [task for task in tasks if task in measured] for kind, tasks in material.blocks.items()}
    blocks = {kind: tasks for kind, tasks in blocks.items() if len(tasks) >= FEWEST_TASKS}
    if material.last not in blocks:
        return None
    names, settings = np.array(designs, dtype=object), material.settings.of_other_tests
    pairs = {"first": names[first], "second": names[second]}
    parts = [_combined(kind, pairs, [measured[task] for task in tasks], settings) for kind, tasks in blocks.items()]
    table = pd.concat(parts, ignore_index=True)
    if material.last not in set(table["type"]):
        return None
    for end in _tests(table):
        table[f"p_adjusted{end}"] = corrected(table.assign(p=table[f"p{end}"], p_min=0.0), settings)["p_adjusted"]
    table = corrected(table.assign(p_min=0.0), settings).drop(columns=SHARED)
    last = table[table["type"] == material.last]
    of_tasks = [
        pd.DataFrame(
            {"task": task, **pairs, "difference": one.differences.mean(axis=1), "variance": one.of_items.variance}
        )
        for task, one in measured.items()
    ]
    return Answer(
        "random_effects",
        methods=[METHODS],
        grids=[_grid(last.iloc[material.leading(last)], settings)],
        frames={"random_effects": table},
        csv={"random_effects_tasks": pd.concat(of_tasks, ignore_index=True)},
        notes=_notes(last, [task for task in material.tasks if task not in measured], settings),
    )


def _measured(material: Material, designs: list[str], first: Ints, second: Ints) -> dict[str, _Task]:
    """Return the tasks whose items all designs have for a common seed, with the differences of those seeds' scores."""
    scores, parts = material.frame.set_index(["task", "design", "seed"])["score"], dict[str, list[Items]]()
    for items in material.items:
        parts.setdefault(items.task, []).append(items)
    measured = {}
    for task in material.tasks:
        of_task = [items for items in parts.get(task, []) if len(items.ids) > 1]
        seeds = by_number(set.intersection(*(set(items.seeds_of(designs)) for items in of_task))) if of_task else []
        if not seeds:
            continue
        by_seed = np.array([[scores[task, design, seed] for seed in seeds] for design in designs])
        terms = [item_variances(i.kind, i.table(designs, seeds), i.truth, first, second) for i in of_task]
        of_items = ItemVariances(
            np.sum([one.variance for one in terms], axis=0) / len(terms) ** 2,  # the score is the mean of its subsets
            np.sum([one.with_seed for one in terms], axis=0) / len(terms) ** 2,
            min(one.freedom for one in terms),
        )
        items_of_all = sum(len(items.ids) for items in of_task)
        measured[task] = _Task(by_seed[second] - by_seed[first], of_items, items_of_all, seeds)
    return measured


def _combined(kind: str, pairs: dict[str, Any], tasks: list[_Task], settings: Settings) -> pd.DataFrame:
    v = np.stack([task.of_items.variance for task in tasks], axis=1)
    differs = v.max(axis=1) > LEAST  # a pair that differs on no item has nothing to weigh
    v, pairs = v[differs], {side: np.asarray(names)[differs] for side, names in pairs.items()}
    y = np.stack([task.differences.mean(axis=1) for task in tasks], axis=1)[differs]
    freedom = np.array([task.of_items.freedom for task in tasks], dtype=np.float64)
    seeds, both = min(len(task.seeds) for task in tasks), {}
    if seeds > 1 and all(task.seeds == tasks[0].seeds for task in tasks):
        rest = table_mean_squares(np.stack([task.differences for task in tasks], axis=1)[differs])[2] / seeds
        of_seeds = np.maximum(0, rest - np.mean([task.of_items.with_seed[differs] for task in tasks], axis=0))
        beyond = random_effects(y, v + of_seeds[:, None], freedom, 1 - settings.alpha)
        both = {"error_seeds": np.sqrt(of_seeds), "tau_seeds": beyond.tau, "p_q_seeds": beyond.p_q}
    columns = {"type": kind, **pairs, "n_tasks": len(tasks), "n_items": sum(task.items for task in tasks)}
    columns |= {"n_seeds": seeds, "difference": y.mean(axis=1), "error_items": np.sqrt(v.mean(axis=1)), **both}
    columns |= vars(random_effects(y, v, freedom, 1 - settings.alpha))
    return pd.DataFrame(columns)


def _notes(rows: pd.DataFrame, left_out: list[str], settings: Settings) -> list[str]:
    """Say how many pairs vary by more than their noise, what more items could mend, and which tasks are left out."""
    items, *seeds = (int((rows[f"p_adjusted{end}"] <= settings.alpha).sum()) for end in _tests(rows))
    noise = rows["error_items"] ** 2
    share = 100 * float((noise / (noise + rows["tau"] ** 2)).median())
    further = f", {seeds[0]} by more than items and seeds do" if seeds else ""
    notes = [
        f"Random effects: {items} of {len(rows)} pairs differ over tasks by more than their items' noise explains"
        f" (Q{after_correction(settings)}){further}. Of the squared error of a mean over tasks items make {share:.0f} %"
        " (median of pairs): more items per task could take off that much, more tasks the rest too."
    ]
    if left_out:
        notes.append(f"Random effects: {listed(left_out, 8)} left out, without items that all designs share.")
    return notes


def _tests(table: pd.DataFrame) -> list[str]:
    """Return the endings of the columns of the tests by Q that are there."""
    return [end for end in ("_q", "_q_seeds") if f"p{end}" in table and table[f"p{end}"].notna().all()]


def _grid(rows: pd.DataFrame, settings: Settings) -> Grid:
    level, one, tests = percent(settings.alpha), rows.iloc[0], _tests(rows)
    score, signed, interval = settings.numbers.score, settings.numbers.signed, settings.numbers.interval

    def cells(row: Row) -> list[Cell]:
        tau = Cell(score(row["tau"]), below=(f"{score(row['tau_low'])} to {score(row['tau_high'])}",))
        ends = [Cell(interval(row[f"{which}low"], row[f"{which}high"])) for which in ("", "new_")]
        p, *p_q = (p_cell(row, settings, ending, star=False) for ending in ("", *tests))
        numbers = [tau, Cell(f"{100 * row['i2']:.0f} %"), Cell(score(row["error_items"])), p_q[0]]
        if p_q[1:]:
            numbers += [Cell(score(row["error_seeds"])), Cell(score(row["tau_seeds"])), p_q[1]]
        mean = Cell(signed(row["mean"]), below=(signed(row["difference"]),))
        return [Cell(pair_name(row)), mean, ends[0], p, *numbers, ends[1]]

    after = after_correction(settings) and f", below it{after_correction(settings)} over {len(rows)} pairs"
    seeds = ""
    if tests[1:]:
        seeds = (
            " Seeds: standard error that seeds give a task's difference, beyond a shift of all tasks and beyond items;"
            " it is part of the SD between tasks, and the next two columns take it off too."
        )
    caption = (
        f"Each pair as a meta-analysis of {tasks_text(one['type'], one['n_tasks'])} that have items"
        f" ({one['n_items']:,}; a task's variance is that of its own items, runs fixed, seeds averaged within an item),"
        f" second minus first. Mean weighted by precision, below it the plain one; {level} interval and p of the"
        f" weighted mean by Hartung and Knapp, with an error of at least what items make{after}. SD between tasks: of"
        f" the true differences, beyond items' noise (Paule and Mandel), below it its {level} interval. I2: share of"
        " the spread that items do not explain. Items: standard error that a task's items give its difference (root"
        " mean square). p of Q: do the true differences vary at all (Welch)? Where it is not small, they may be alike."
        f"{seeds} Further task: {level} interval of its true difference. The signed-rank test asks to which side"
        " differences lie, not whether they are alike. No star: p speaks of these runs."
    )
    header = [PAIR, "Mean", level, "p", "SD between tasks", "I2", "Items", "p of Q"]
    header += ["Seeds", "SD beyond seeds", "p of Q beyond seeds"] if tests[1:] else []
    header.append("Further task")
    grid = Grid("random-effects", caption, header, title="Tasks beyond the noise of their items")
    return filled(grid, rows, cells, settings.rows_shown, f"{OF_BEST}; random_effects.csv has all.")
