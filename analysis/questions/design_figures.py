"""Figures of the designs: their scores task by task, and against their costs."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pandas as pd

from analysis.drawings.canvas import canvas, legend, list_axes, score_ticks
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, GREY, LINE, MOST_DESIGNS, PALE, mark
from analysis.grids.formats import Numbers
from analysis.manifests.cost import tokens_per_second
from analysis.manifests.designs import Design
from analysis.questions.question import Answer, Material

PLACE = 210
MOST_TASKS = 80
COSTS: dict[str, Callable[[Design], float | None]] = {
    "trainable parameters": lambda design: design.parameters,
    "training speed (tokens/s)": tokens_per_second,
}


def answer(material: Material) -> Answer:
    """Return the figures alone; scores.csv has the scores, the tables of means and of pairs have the costs."""
    figures = (task_dots, cost_score)
    return Answer(
        "designs", "Designs task by task", draw=lambda: [drawn for make in figures if (drawn := make(material))]
    )


def task_dots(material: Material) -> Drawing | None:
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
    return Drawing("tasks", "Scores by task", " ".join(filter(None, [caption, sentence, cut])), alt, figure)


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


def cost_score(material: Material) -> Drawing | None:
    """One panel a cost that at least two designs state; none where there is none."""
    known = {name: {label: read(design) for label, design in material.designs.items()} for name, read in COSTS.items()}
    stated = {name: {label: float(x) for label, x in values.items() if x} for name, values in known.items()}
    panels = {name: values for name, values in stated.items() if len(values) > 1}
    if not panels:
        return None
    designs, sentence = material.highest(MOST_DESIGNS)
    names, means = short_names(designs), material.matrix.mean()
    looks = {design: {"marker": mark(k).shape, "color": mark(k).colour} for k, design in enumerate(designs)}
    width = 3.0 * len(panels) + 0.4 + inches(names.values()) + 0.4
    figure = canvas(width, max(2.7, 0.4 + LINE * len(designs)))
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
    for axes, (name, values) in zip(grid, panels.items(), strict=True):
        _cost_panel(axes, values, means, looks)
        axes.set_xlabel(name)
    grid[0].set_ylabel("mean score")
    score_ticks(grid[0].yaxis, material.settings.numbers)
    drawn = [design for design in designs if any(design in values for values in panels.values())]
    handles = {f" {names[design]}": {"linestyle": "none", "markersize": 6, **looks[design]} for design in drawn}
    legend(figure, handles, loc="outside right center", handletextpad=0.1)
    best = means[list(next(iter(panels.values())))].idxmax()
    alt = f"Mean score against {' and '.join(panels)}. The highest score is that of {best},"
    alt += f" {material.settings.numbers.score(means[best])}."
    caption = f"Mean score over {material.over} against {' and '.join(panels)}."
    more = f" {sentence} The others are grey dots." if sentence else ""
    return Drawing("cost_score", "Cost against score", f"{caption}{more}", alt, figure)


def _cost_panel(axes: Any, values: dict[str, float], means: Any, looks: dict[str, dict[str, str]]) -> None:
    others = {"marker": ".", "color": PALE, "zorder": 2}
    usual = {"markersize": 7, "markeredgecolor": "white", "markeredgewidth": 0.5, "zorder": 3}
    for label, x in values.items():
        look = usual | looks[label] if label in looks else others
        axes.plot([x], [means[label]], linestyle="none", **look)
    low, high = min(values.values()), max(values.values())
    if high > 20 * low:
        axes.set_xscale("log")
    elif high > low:
        axes.margins(x=0.12)
    else:
        axes.set_xlim(low * 0.8, high * 1.2)
    axes.margins(y=0.12)
    axes.grid()
    if high <= 20 * low:
        from matplotlib.ticker import EngFormatter, MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
