"""All designs at once: Friedman's test, and the critical-difference diagram of average ranks."""

from functools import partial

import pandas as pd

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, BLUE, LINE
from analysis.formats import p_is
from analysis.render import Section
from analysis.statistics.ranks import friedman, nemenyi_distance
from analysis.tables.comparison import Comparison

MOST_NAMED = 30  # designs of the diagram


def section(compared: Comparison) -> Section | None:
    """Return the diagram and a sentence; None with two designs, whose ranks are a sign test, or with one task."""
    matrix = compared.matrix
    if matrix.shape[1] < 3 or len(matrix) < 2:
        return None
    test = friedman(matrix.to_numpy(dtype=float))
    note = (
        f"Friedman's test over {compared.over}: F {test.f:.2f} (Iman and Davenport; df {test.df1}, {test.df2}),"
        f" {p_is(test.p_f)}, Kendall's W {test.w:.2f}. Ranks of these checkpoints say nothing of other seeds, and"
        " change with the designs compared."
    )
    return Section("ranks", "Average ranks", draw=partial(critical_difference, compared), notes=[note])


def critical_difference(compared: Comparison) -> list[Drawing]:
    """Return the diagram of Demsar (2006, figure 1): mean ranks on a line, bars over designs that do not differ."""
    from scikit_posthocs import critical_difference_diagram

    settings, (designs, sentence) = compared.settings, compared.highest(MOST_NAMED)
    names, matrix = short_names(designs), compared.matrix
    averages = friedman(matrix.to_numpy(dtype=float)).average_ranks
    ranks = pd.Series(averages, index=matrix.columns)[designs].rename(names)
    cd = nemenyi_distance(len(averages), len(matrix), settings.alpha)
    joined = pd.DataFrame({name: 1.0 * ((ranks - rank).abs() < cd) for name, rank in ranks.items()})
    figure = canvas(2 * inches(names.values()) + 5.0, 0.8 + LINE * 1.5 * len(designs))
    axes = figure.add_subplot()
    axes.spines.top.set_visible(True)
    drawn = critical_difference_diagram(
        ranks,
        joined,
        ax=axes,
        text_h_margin=0.05 * float(ranks.max() - ranks.min()),
        alpha=settings.alpha,
        label_fmt_left="{label}  {rank:.2f}",
        label_fmt_right="{rank:.2f}  {label}",
        crossbar_props={"color": BLUE, "linewidth": 3},
        elbow_props={"color": BLACK, "linewidth": 0.8},
    )
    for (bar,) in drawn["crossbars"]:
        bar.set_xdata(sorted(bar.get_xdata()))  # else in the order of a set of names, another in each process
    caption = (
        f"Mean ranks over {compared.over} (1 is best). Bars join designs whose ranks differ by less than {cd:.2f},"
        f" Nemenyi's critical difference at {settings.alpha:g}. {sentence}"
    ).strip()
    return [Drawing("critical_difference", "Critical-difference diagram", caption, figure)]
