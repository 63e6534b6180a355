"""What is seen of a figure: its words, and the marks and intervals of a panel."""

import numpy as np


def random(count, tasks=10):
    rng = np.random.default_rng(0)
    return np.round(rng.uniform(0.4, 0.6, (count, tasks)) + np.linspace(0, 0.2, count)[:, None], 4)


def named(drawings):
    return {drawing.name: drawing for drawing in drawings}


def texts(figure):
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def lines(axes):
    """The horizontal intervals of a panel: place -> (low, high)."""
    from matplotlib.collections import LineCollection

    segments = [s for c in axes.collections if isinstance(c, LineCollection) for s in c.get_segments()]
    return {round(float(s[0][1])): tuple(sorted(float(x) for x in s[:, 0])) for s in segments}


def over_seeds(axes):
    """The grey intervals over tasks and seeds: place of their pair -> (low, mean, high)."""
    grey = [line for line in axes.lines if line.get_marker() == "|"]
    return {float(np.floor(line.get_ydata()[0])): tuple(map(float, line.get_xdata())) for line in grey}
