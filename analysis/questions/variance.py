"""Shares of design, task and seed in the variance of the scores: one row per block."""

import pandas as pd

from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material
from analysis.statistics.seeds import SeedTable, seed_table
from analysis.statistics.variance import Component, components, seed_standard_error, task_standard_error

PLACE = 150
METHODS = "The variance of scores was split into design, task, seed and their interactions [@searle1992]."

MEANING = {
    "design": "designs differ on average",
    "task": "tasks differ in difficulty",
    "seed": "a seed is better for all designs on all tasks; cancels in a difference of designs with the same seeds",
    "design x task": "which design is ahead depends on the task; more tasks make it smaller",
    "design x seed": "which design is ahead depends on the seed, on all tasks alike; only more seeds make it smaller",
    "task x seed": "a seed suits a task, whatever the design; cancels in a difference of designs with the same seeds",
    "design x task x seed": "the rest: a run's luck on one task; more tasks or more seeds make it smaller",
}
UNKNOWN = (
    "Seeds: fewer than two designs share two seeds, so how much of a difference is the luck of a seed is not known;"
    " the tests speak of these runs on other tasks, not of the designs trained again."
)


def answer(material: Material) -> Answer | None:
    """Return the components of variance of every block, or one note that they are not known."""
    tasks = [task for own in material.types.values() for task in own]
    table = seed_table(material.frame, list(material.designs), tasks)
    if table is None:
        return Answer("variance", notes=[UNKNOWN], about=_trained_once(material))
    found = {kind: components(table.block(own)) for kind, own in material.blocks.items() if len(own) > 1}
    sizes = {kind: len(material.blocks[kind]) for kind in found}
    frame = _frame(found, sizes, table)
    grid = _grid(found, sizes, table)
    return Answer(
        "variance", methods=[METHODS], grids=[grid], frames={"variance": frame}, notes=_notes(found, sizes, table)
    )


def _trained_once(material: Material) -> dict[tuple[str, str], str]:
    """A sentence for the verdict on each pair of our own runs that stand on one seed each."""
    once = {label for label, design in material.designs.items() if len({run.seed for run in design.runs}) == 1}
    pairs = set(zip(material.pairs["first"], material.pairs["second"], strict=True))
    said = "Each was trained once, so this is said of two runs, not of the designs trained with another seed."
    return {pair: said for pair in pairs if once.issuperset(pair)}


def _frame(found: dict[str, dict[str, Component]], sizes: dict[str, int], table: SeedTable) -> pd.DataFrame:
    """One row a (block, component), every digit; `se_...` repeat the block's standard errors."""
    rows = []
    for kind, own in found.items():
        n = sizes[kind]
        errors = {
            "se_one_seed": seed_standard_error(own, n, 1),
            "se_these_seeds": seed_standard_error(own, n, len(table.seeds)),
            "se_tasks": task_standard_error(own, n),
        }
        count = {"n_designs": len(table.designs), "n_tasks": n, "n_seeds": len(table.seeds)}
        rows += [
            {"type": kind, "component": name, **vars(part), "sd": part.variance**0.5, **count, **errors}
            | {"meaning": MEANING[name]}
            for name, part in own.items()
        ]
    return pd.DataFrame(rows)


def _grid(found: dict[str, dict[str, Component]], sizes: dict[str, int], table: SeedTable) -> Grid:
    """Share and standard deviation of each component; then the standard errors of a difference."""
    rows = []
    for kind, own in found.items():
        errors = [seed_standard_error(own, sizes[kind], n) for n in (1, len(table.seeds))]
        errors.append(task_standard_error(own, sizes[kind]))
        cells = [
            Cell(f"{100 * part.share:.1f} %", below=(("< 0" if part.estimate < 0 else score(part.variance**0.5)),))
            for part in own.values()
        ]
        rows.append([Cell(f"{kind} (n = {sizes[kind]})"), *cells, *[Cell(score(error)) for error in errors]])
    names = [name.replace("design x task x seed", "rest") for name in next(iter(found.values()))]
    several = f"SE {len(table.seeds)} seeds"
    return Grid("variance", _caption(table), ["Tasks", *names, "SE 1 seed", several, "SE tasks"], rows, title="Seeds")


def _caption(table: SeedTable) -> str:
    return (
        f"Share of the variance of single scores ({len(table.designs)} designs x tasks x {len(table.seeds)} seeds), its"
        " standard deviation in brackets: random-effects analysis of variance, expected mean squares; a component"
        " estimated below zero is set to 0 (< 0). SE: standard error of the difference of two designs' means that comes"
        " from seeds alone, with one seed and with these, and from the choice of tasks alone. A seed's effect on all"
        " designs (seed, task x seed) cancels in a difference of designs with the same seeds; rest is what one run has"
        " on one task. variance.csv says what each component means."
    )


def _notes(found: dict[str, dict[str, Component]], sizes: dict[str, int], table: SeedTable) -> list[str]:
    kind = list(found)[-1]
    error = seed_standard_error(found[kind], sizes[kind], 1)
    where = f"the {sizes[kind]} tasks" if kind == "All" else f"the {sizes[kind]} {kind} tasks"
    said = (
        f"Seeds: a difference between two designs over {where} measured with one seed carries a standard error of"
        f" {score(error)} from seeds alone, with {len(table.seeds)} seeds"
        f" {score(seed_standard_error(found[kind], sizes[kind], len(table.seeds)))}."
    )
    negative = [f"{name} ({block})" for block, own in found.items() for name, part in own.items() if part.estimate < 0]
    notes = [said, *([f"The split by seeds uses {table.note}."] if table.note else [])]
    if negative:
        notes.append(f"Estimated below zero, so set to 0: {', '.join(negative)}.")
    return notes
