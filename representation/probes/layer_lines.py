"""A number of each layer as a line, one line for each encoder, with its interval as a band."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.figures.drawing import Drawing
from analysis.figures.fit import inches, short_names
from analysis.figures.style import BLACK, LINE, MOST_DESIGNS, mark
from representation.styled import Words, styled

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """values, low, high: [L]. trained: drawn through; else broken."""

    values: Floats
    low: Floats
    high: Floats
    trained: bool


def layer_lines(words: Words, lines: Mapping[str, Line], what: str) -> Drawing:
    """At most twelve lines over layers 1 to L; the caption names what is left out.

    what: the name of the vertical axis, whose zero is marked.
    """
    return styled(lines, lambda: _drawn(words, lines, what))


def _drawn(words: Words, lines: Mapping[str, Line], what: str) -> Drawing:
    from matplotlib.figure import Figure

    shown = dict(list(lines.items())[:MOST_DESIGNS])
    names = short_names(shown)
    size = 4.2 + inches(names.values()) + 0.5, max(2.8, 0.6 + LINE * len(shown))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    for k, (name, line) in enumerate(shown.items()):
        look, layers = mark(k), np.arange(1, len(line.values) + 1)
        axes.fill_between(layers, line.low, line.high, color=look.colour, alpha=0.15, linewidth=0)
        axes.plot(layers, line.values, marker=look.shape, color=look.colour, markersize=4, label=names[name],
                  linestyle="-" if line.trained else "--", linewidth=1.2)  # fmt: skip
    axes.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("layer")
    axes.set_ylabel(what)
    axes.grid(axis="y")
    figure.legend(loc="outside right center")
    return words.drawing(figure, list(lines)[MOST_DESIGNS:])
