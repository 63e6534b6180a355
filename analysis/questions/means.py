"""Means by task type, one row per design."""

import pandas as pd

from analysis.control.rule import Footnote
from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import costs, has_costs
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
    return Answer("means", grids=[type_grid(material)], frames={"by_type": _for_file(material)}, main=True)


def heads(material: Material) -> list[str]:
    """Return the names of the columns of the means, with the number of tasks in each type."""
    names = {kind: f"{kind} (n = {len(tasks)})" for kind, tasks in material.types.items()}
    means = {MEAN_TYPES: f"Mean ({len(material.types)} types)", MEAN_TASKS: f"Mean ({len(material.tasks)} tasks)"}
    return [(means | names)[column] for column in material.means]


def type_grid(material: Material) -> Grid:
    """Means by type; with more designs than are shown, the highest means, in config order."""
    means, shown = material.means, material.settings.rows_shown
    leading = means[MEAN_TASKS if MEAN_TASKS in means else means.columns[0]]
    kept = means.loc[means.index.isin(leading.nlargest(shown).index)] if len(means) > shown else means
    styles = {column: _styles(means[column], material.settings.decimals) for column in means.columns}
    rows, score = [], material.settings.numbers.score
    for design, values in kept.iterrows():
        cells = [Cell(score(value), styles[column].get(str(design), "")) for column, value in values.items()]
        rows.append([Cell(str(design)), *cells])
    caption = "Mean score by task type (n tasks each). Best and second best of each column are set off."
    rest = f"The {shown} highest of {len(means)} designs; by_type.csv has all." if len(means) > shown else ""
    return Grid("by-type", caption, ["Design", *heads(material)], rows, rest=rest, title="Scores by task type")


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
        spent = [costs(material.designs[str(label)]) for label in table.index]
        names = ("trainable", "train_flops", "train_tokens_per_second", "peak_memory_bytes")
        for k, (name, values) in enumerate(zip(names, zip(*spent, strict=True), strict=True)):
            table.insert(k, name, list(values))
    if material.footnotes:
        marked = [[note for note in material.footnotes if label in note.marked] for label in table.index]
        table["differs_in"] = list(map(footnote_keys, marked))
    return table.reset_index()


def footnote_keys(notes: list[Footnote]) -> str:
    """Return the keys in which a design or pair differs, as a csv file has them."""
    return ";".join(key for note in notes for key in note.keys)
