"""Cost against score: trainable parameters and training speed, where the manifests say them."""

from collections.abc import Callable
from typing import Any

from analysis.drawings.canvas import canvas, legend
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
    known = {name: {label: read(design) for label, design in material.designs.items()} for name, read in COSTS.items()}
    stated = {name: {label: float(x) for label, x in values.items() if x} for name, values in known.items()}
    panels = {name: values for name, values in stated.items() if len(values) > 1}
    if not panels:
        return []
    designs, sentence = material.highest(MOST_DESIGNS)
    names, means = short_names(designs), material.matrix.mean()
    looks = {design: {"marker": mark(k).shape, "color": mark(k).colour} for k, design in enumerate(designs)}
    width = 3.0 * len(panels) + 0.4 + inches(names.values()) + 0.4
    figure = canvas(width, max(2.7, 0.4 + LINE * len(designs)))
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
    for axes, (name, values) in zip(grid, panels.items(), strict=True):
        _panel(axes, values, means, looks)
        axes.set_xlabel(name)
    grid[0].set_ylabel("mean score")
    drawn = [design for design in designs if any(design in values for values in panels.values())]
    handles = {f" {names[design]}": {"linestyle": "none", "markersize": 6, **looks[design]} for design in drawn}
    legend(figure, handles, loc="outside right center", handletextpad=0.1)
    best = means[list(next(iter(panels.values())))].idxmax()
    alt = f"Mean score against {' and '.join(panels)}. The highest score is that of {best}, {score(means[best])}."
    caption = f"Mean score over {material.over} against {' and '.join(panels)}."
    more = f" {sentence} The others are grey dots." if sentence else ""
    return [Drawing("cost_score", "Cost against score", f"{caption}{more}", alt, figure)]


def _panel(axes: Any, values: dict[str, float], means: Any, looks: dict[str, dict[str, str]]) -> None:
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
