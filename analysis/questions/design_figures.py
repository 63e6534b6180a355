"""Figure of the designs: their scores task by task."""

from itertools import pairwise
from typing import Any

import pandas as pd

from analysis.drawings.canvas import canvas, list_axes
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, GREY, LINE, MOST_DESIGNS, PALE, mark
from analysis.grids.formats import Numbers
from analysis.questions.question import Answer, Material

PLACE = 210
MOST_TASKS = 80


def answer(material: Material) -> Answer:
    """Return the figure alone; scores.csv has the scores."""
    return Answer("designs", "Designs task by task", draw=lambda: [task_dots(material)])


def task_dots(material: Material) -> Drawing:
    """One line per task, one mark per design; tasks by type, within it from easy to hard."""
    designs, sentence = material.highest(MOST_DESIGNS)
    rows, cut = _tasks(material)
    scores = material.matrix.loc[[task for _, task in rows], designs]
    tasks, names = short_names(scores.index), short_names(designs)
    page, widest = 5.6 + inches(tasks.values()), 1.05 * inches(names.values()) + 0.6
    across = max(1, min(3, int(page / widest)))
    figure = canvas(page, 0.9 + 0.22 * -(-len(designs) // across) + LINE * len(rows))
    grid = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.2))
    _dots(grid[0], scores, names)
    _dots(grid[1], scores.sub(scores.mean(axis=1), axis=0), names)
    for axes, label in zip(grid, ("score", "score minus the mean of these designs"), strict=True):
        _task_axis(axes, rows, list(tasks.values()), material.settings.numbers)
        axes.set_xlabel(label)
    grid[1].axvline(0, color=BLACK, linewidth=0.8, zorder=0)
    handles = grid[0].get_legend_handles_labels()[0]
    figure.legend(handles=handles, loc="outside upper center", ncols=across, handletextpad=0.1, columnspacing=1.0)
    spread, score = scores.max(axis=1) - scores.min(axis=1), material.settings.numbers.score
    alt = (
        f"Scores of {len(designs)} designs on {len(rows)} tasks, from {score(scores.min().min())} to"
        f" {score(scores.max().max())}. They lie furthest apart on {spread.idxmax()}, by {score(spread.max())}."
    )
    caption = (
        "Score of each design on each task (mean over seeds), and its distance from the mean of the designs drawn;"
        " tasks by type, within it from high to low."
    )
    return Drawing("tasks", "Scores by task", " ".join(filter(None, [caption, sentence, cut])), figure, alt)


def _dots(axes: Any, values: pd.DataFrame, names: dict[str, str]) -> None:
    """One mark a design in each row. values: tasks x designs."""
    places = range(len(values))
    axes.hlines(places, values.min(axis=1), values.max(axis=1), color=PALE, linewidth=2.5, zorder=1)
    for k, design in enumerate(values.columns):
        look = mark(k)
        label = f" {names[design]}"  # a name that begins with "_" would be left out of the legend
        axes.plot(values[design], places, linestyle="none", marker=look.shape, color=look.colour, markersize=5,
                  markeredgecolor="white", markeredgewidth=0.4, label=label, zorder=2)  # fmt: skip


def _tasks(material: Material) -> tuple[list[tuple[str, str]], str]:
    """(type, task) by type, then from high to low; where there are too many, those on which designs differ most."""
    kept, cut = [(kind, task) for kind, tasks in material.types.items() for task in tasks], ""
    if len(kept) > MOST_TASKS:
        cut = f"Of {len(kept)} tasks the {MOST_TASKS} on which designs differ most are drawn."
        spread = material.matrix.max(axis=1) - material.matrix.min(axis=1)
        kept = sorted(kept, key=lambda row: -spread[row[1]])[:MOST_TASKS]
    means, kinds = material.matrix.mean(axis=1), list(material.types)
    return sorted(kept, key=lambda row: (kinds.index(row[0]), -means[row[1]], row[1])), cut


def _task_axis(axes: Any, rows: list[tuple[str, str]], names: list[str], numbers: Numbers, size: float = 7.0) -> None:
    """Names of tasks and a line between types."""
    axes.set_yticks(range(len(rows)), names, fontsize=size)
    list_axes(axes, len(rows), 5, numbers)
    for k, ((kind, _), (other, _)) in enumerate(pairwise(rows)):
        if kind != other:
            axes.axhline(k + 0.5, color=GREY, linewidth=0.6)
