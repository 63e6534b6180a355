"""Means by task type, one row per design, with its costs."""

import pandas as pd

from analysis.control.rule import Footnote
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import (
    cost_header,
    cost_texts,
    has_costs,
    memory_kinds,
    memory_note,
    peak_memory,
    tokens_per_second,
    training_flops,
)
from analysis.questions.question import Answer, Material

PLACE = 10
MEAN_TASKS = "Mean (tasks)"
MEAN_TYPES = "Mean (types)"


def seed_means(frame: pd.DataFrame, designs: list[str], tasks: list[str]) -> pd.DataFrame:
    """Return tasks x designs: the mean over seeds, the score of a design on a task."""
    kept = frame[frame["design"].isin(designs) & frame["task"].isin(tasks)]
    return kept.groupby(["task", "design"])["score"].mean().unstack("design").loc[tasks, designs]


def type_means(matrix: pd.DataFrame, types: dict[str, list[str]]) -> pd.DataFrame:
    """Return designs x (each type, mean over tasks, mean over types); the means only where there are two types."""
    table = pd.DataFrame({kind: matrix.loc[tasks].mean() for kind, tasks in types.items()})
    if len(types) > 1:
        over_types = table.mean(axis=1)
        table[MEAN_TASKS] = matrix.loc[[task for tasks in types.values() for task in tasks]].mean()
        table[MEAN_TYPES] = over_types
    return table.loc[matrix.columns]


def answer(material: Material) -> Answer:
    """Return the table of means; by_type.csv has the costs in full."""
    return Answer("means", grids=[type_grid(material)], csv={"by_type": _for_file(material)}, main=True)


def heads(material: Material) -> list[str]:
    """Return the names of the columns of the means, with the number of tasks in each type."""
    sizes = {kind: len(tasks) for kind, tasks in material.types.items()}
    total = sum(sizes.values())
    names = {MEAN_TYPES: f"Mean ({len(sizes)} types)", MEAN_TASKS: f"Mean ({total} tasks)"}
    names |= {kind: f"{kind} (n = {size})" for kind, size in sizes.items()}
    return [names[column] for column in material.means]


def type_grid(material: Material) -> Grid:
    """Means by type; with more designs than are shown, the highest means, in config order."""
    means, shown = material.means, material.settings.rows_shown
    kept, rest = list(means.index), ""
    if len(kept) > shown:
        top = set(means[MEAN_TASKS if MEAN_TASKS in means else means.columns[0]].nlargest(shown).index)
        kept = [design for design in kept if design in top]
        rest = f"The {shown} highest of {len(means)} designs; by_type.csv has all."
    styles = {column: _styles(means[column], material.settings.decimals) for column in means.columns}
    costly, kinds = has_costs(material.designs), memory_kinds(material.designs.values())
    rows = []
    for design in kept:
        costs = [Cell(text) for text in cost_texts(material.designs[design], kinds)] if costly else []
        values = zip(means.columns, means.loc[design].tolist(), strict=True)
        cells = [Cell(score(value), styles[column].get(design, "")) for column, value in values]
        rows.append([Cell(design), *costs, *cells])
    caption = "Mean score by task type (n tasks each). Best and second best of each column are set off."
    caption += memory_note(kinds)
    header = ["Design", *(cost_header(kinds) if costly else []), *heads(material)]
    return Grid("by-type", caption, header, rows, rest=rest, title="Scores by task type")


def _styles(column: pd.Series, decimals: int) -> dict[str, str]:
    """Best and second, ties included; a column where all are equal has neither."""
    rounded = column.round(decimals)
    levels = sorted(set(rounded), reverse=True)[:2]
    if len(levels) < 2:
        return {}
    names = dict(zip(levels, ("best", "second"), strict=True))
    return {str(design): names[value] for design, value in rounded.items() if value in names}


def _for_file(material: Material) -> pd.DataFrame:
    table = material.means.rename_axis("design").copy()
    if has_costs(material.designs):
        designs = [material.designs[str(label)] for label in table.index]
        table.insert(0, "trainable", [design.parameters for design in designs])
        table.insert(1, "train_flops", [training_flops(design) for design in designs])
        table.insert(2, "train_tokens_per_second", [tokens_per_second(design) for design in designs])
        table.insert(3, "peak_memory_bytes", [peak_memory(design) for design in designs])
        table.insert(4, "peak_memory_of", ["+".join(sorted(memory_kinds([design]))) for design in designs])
    if material.footnotes:
        marked = [[note for note in material.footnotes if label in note.marked] for label in table.index]
        table["differs_in"] = list(map(footnote_keys, marked))
    return table.reset_index()


def footnote_keys(notes: list[Footnote]) -> str:
    """Return the keys in which a design or pair differs, as a csv file has them."""
    return ";".join(key for note in notes for key in note.keys)
