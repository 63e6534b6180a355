"""Figures draw the numbers of their tables, mark what is significant, and hold up under bad inputs."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from analysis.tables.pairs import forest
from tests.analysis.three_seeds import by_seed, compared


def lines(axes):
    """The horizontal intervals of a panel: place -> (low, high)."""
    segments = [s for c in axes.collections if isinstance(c, LineCollection) for s in c.get_segments()]
    return {round(float(s[0][1])): tuple(sorted(float(x) for x in s[:, 0])) for s in segments}


def of_pairs(values, names, seeds=1, control=""):
    """What the figure of pairs reads. values: [designs, tasks]."""
    return compared(by_seed(values, seeds), names, {"STS": [f"t{k}" for k in range(values.shape[1])]}, control)


@pytest.mark.parametrize("control", ["", "a", "c", "d"])
def test_the_leading_figure_is_each_design_minus_one(control):
    """Minus the control, or the highest mean, whichever design of its pair comes first in the order."""
    values = np.round(0.5 + np.random.default_rng(1).normal(0, 0.05, (4, 12)), 3)
    of = of_pairs(values, "abcd", 3, control)
    one = control or of.matrix.mean().idxmax()
    axes = forest(of).figure.axes[0]
    marked = {float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in axes.lines[:-1]}
    for place, other in enumerate(label for label in "abcd" if label != one):
        assert axes.get_yticklabels()[place].get_text() == other
        mean = (values["abcd".index(other)] - values["abcd".index(one)]).mean()
        assert marked[place] == pytest.approx(mean)
        low, high = lines(axes)[place]
        assert (low + high) / 2 == pytest.approx(mean)
        assert low < mean < high
