"""Cost against score: trainable parameters and training speed, where the manifests say them."""

from collections.abc import Callable
from typing import Any

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import LINE, MOST_DESIGNS, PALE, mark
from analysis.grids.formats import score
from analysis.manifests.cost import tokens_per_second
from analysis.manifests.designs import Design
from analysis.questions.question import Answer, Material

PLACE = 220
COSTS: dict[str, Callable[[Design], float | None]] = {
    "trainable parameters": lambda design: design.parameters,
    "training speed (tokens/s)": tokens_per_second,
}


def answer(material: Material) -> Answer:
    """Return the figure alone; the costs are columns of the tables of means, before and after, and pairs."""
    return Answer("cost", draw=lambda: cost_score(material))


def cost_score(material: Material) -> list[Drawing]:
    """One panel a cost that at least two designs state; none where there is none."""
    from matplotlib.figure import Figure

    known = {name: {label: read(d) for label, d in material.designs.items()} for name, read in COSTS.items()}
    known = {name: {label: x for label, x in own.items() if x} for name, own in known.items()}
    panels = {name: own for name, own in known.items() if len(own) > 1}
    if not panels:
        return []
    designs, sentence = material.highest(MOST_DESIGNS)
    names, means = short_names(designs), material.matrix.mean()
    size = 3.0 * len(panels) + 0.4 + inches(names.values()) + 0.4, max(2.7, 0.4 + LINE * len(designs))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
    for axes, (name, own) in zip(grid, panels.items(), strict=True):
        _panel(axes, own, means, designs)
        axes.set_xlabel(name)
    kind, _ = material.last
    grid[0].set_ylabel("mean score")
    _legend(figure, designs, names, drawn={label for own in panels.values() for label in own})
    best = means[list(next(iter(panels.values())))].idxmax()
    alt = f"Mean score against {' and '.join(panels)}. The highest score is that of {best}, {score(means[best])}."
    caption = f"Mean score over {material.over(kind)} against {' and '.join(panels)}."
    more = f"{sentence} The others are grey dots." if sentence else ""
    return [Drawing("cost_score", "Cost against score", f"{caption} {more}".strip(), alt, figure)]


def _panel(axes: Any, own: dict[str, float | None], means: Any, designs: list[str]) -> None:
    values = {label: float(x) for label, x in own.items() if x is not None}
    for label, x in values.items():
        if label in designs:
            look = mark(designs.index(label))
            axes.plot([x], [means[label]], marker=look.shape, color=look.colour, markersize=7, linestyle="none",
                      markeredgecolor="white", markeredgewidth=0.5, zorder=3)  # fmt: skip
        else:
            axes.plot([x], [means[label]], marker=".", color=PALE, linestyle="none", zorder=2)
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


def _legend(figure: Any, designs: list[str], names: dict[str, str], drawn: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for k, design in enumerate(designs):
        if design in drawn:
            look: dict[str, Any] = {
                "marker": mark(k).shape,
                "color": mark(k).colour,
                "linestyle": "none",
                "markersize": 6,
            }
            handles.append(Line2D([], [], label=f" {names[design]}", **look))
    figure.legend(handles=handles, loc="outside right center", handletextpad=0.1)
