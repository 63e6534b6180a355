"""Shares of design, task and seed in the variance of the scores: one row per block."""

import pandas as pd

from analysis.grids.formats import Numbers
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material
from analysis.questions.tables import tasks_text
from analysis.statistics.seeds import FEWEST_SEEDS, SeedTable, seed_table
from analysis.statistics.variance import REST, components, seed_standard_error, task_standard_error

PLACE = 62
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
    "Seeds: the designs do not share two seeds, so how much of a difference is the luck of a seed is not known;"
    " the tests speak of these runs on other tasks, not of the designs trained again."
)

UNSHARED = (
    "Seeds: the designs do not share two seeds, so the spread over seeds is not split into its parts;"
    f" a pair is compared over tasks and seeds by its own runs, where both designs have {FEWEST_SEEDS} or more."
)


def answer(material: Material) -> Answer | None:
    """Return the components of variance of every block, or one note that they are not known."""
    table, numbers = seed_table(material.frame, list(material.designs), material.tasks), material.settings.numbers
    table = table and table.without_copies()
    if table is None:
        return Answer("variance", notes=[UNSHARED if (material.pairs["n_seeds"] >= FEWEST_SEEDS).any() else UNKNOWN])
    blocks = {kind: tasks for kind, tasks in material.blocks.items() if len(tasks) > 1}
    frame = pd.concat([_components(kind, tasks, table) for kind, tasks in blocks.items()], ignore_index=True)
    grids, notes = [_grid(frame, table, numbers)], _notes(frame, table, numbers)
    return Answer("variance", methods=[METHODS], grids=grids, frames={"variance": frame}, notes=notes)


def _components(kind: str, tasks: list[str], table: SeedTable) -> pd.DataFrame:
    """One row per component of a block, every digit; `se_...` repeat the block's standard errors."""
    parts, n, seeds = components(table.block(tasks)), len(tasks), len(table.seeds)
    frame = pd.DataFrame([{"type": kind, "component": name, **vars(part)} for name, part in parts.items()])
    return frame.assign(
        sd=[part.variance**0.5 for part in parts.values()],
        n_designs=len(table.designs),
        n_tasks=n,
        n_seeds=seeds,
        se_one_seed=seed_standard_error(parts, n, 1),
        se_these_seeds=seed_standard_error(parts, n, seeds),
        se_tasks=task_standard_error(parts, n),
        meaning=[MEANING[name] for name in parts],
    )


def _grid(frame: pd.DataFrame, table: SeedTable, numbers: Numbers) -> Grid:
    """Share and standard deviation of each component; then the standard errors of a difference."""
    rows = []
    for kind, block in frame.groupby("type", sort=False):
        first, deviations = block.iloc[0], block["sd"].map(numbers.score).where(block["estimate"] >= 0, "< 0")
        shares = [Cell(f"{100 * s:.1f} %", below=(d,)) for s, d in zip(block["share"], deviations, strict=True)]
        errors = [Cell(numbers.score(first[name])) for name in ("se_one_seed", "se_these_seeds", "se_tasks")]
        rows.append([Cell(f"{kind} (n = {first['n_tasks']})"), *shares, *errors])
    names = ["rest" if name == REST else name for name in frame["component"].unique()]
    several = f"SE {len(table.seeds)} seeds"
    return Grid("variance", _caption(table), ["Tasks", *names, "SE 1 seed", several, "SE tasks"], rows, title="Seeds")


def _caption(table: SeedTable) -> str:
    return (
        f"Share of the variance of single scores ({len(table.designs)} designs x tasks x {len(table.seeds)} seeds), its"
        " standard deviation in brackets: random-effects analysis of variance, expected mean squares; a component"
        " estimated below zero is set to 0 (< 0). SE: standard error of the difference of two designs' means that comes"
        " from seeds alone, with one seed and with these, and from the choice of tasks alone. A seed's effect on all"
        " designs (seed, task x seed) cancels in a difference of designs with the same seeds; rest is what one run has"
        " on one task."
    )


def _notes(frame: pd.DataFrame, table: SeedTable, numbers: Numbers) -> list[str]:
    last, negative = frame.iloc[-1], frame[frame["estimate"] < 0]
    one, these = numbers.score(last["se_one_seed"]), numbers.score(last["se_these_seeds"])
    notes = [
        f"Seeds: a difference between two designs over {tasks_text(last['type'], last['n_tasks'])} measured with one"
        f" seed carries a standard error of {one} from seeds alone, with {len(table.seeds)} seeds {these}."
    ]
    if table.note:
        notes.append(f"The split by seeds uses {table.note}.")
    if len(negative):
        names = [f"{name} ({kind})" for name, kind in zip(negative["component"], negative["type"], strict=True)]
        notes.append(f"Estimated below zero, so set to 0: {', '.join(names)}.")
    return notes
