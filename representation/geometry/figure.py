"""Score against geometry: one panel per measure and task type, one marker per cell."""

from math import isnan
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import MOST_DESIGNS, house_style, mark
from analysis.grids.formats import signed
from representation.geometry.relation import GROUPS, MEASURES, types_of

PANEL = 1.6  # inches


def geometry_figure(table: pd.DataFrame, correlations: pd.DataFrame, over: str) -> Drawing:
    """Draw the runs, or where none is scored the starts: both in one panel would squeeze either into a corner.

    table: of `representation.geometry.geometry`; correlations: of `relation`, not empty; over: which texts.
    """
    group = max(trained for trained, name in GROUPS.items() if name in set(correlations["cells"]))
    scored = table[(table["trained"] == group)].dropna(subset=["score"])
    drawn = correlations[correlations["cells"] == GROUPS[group]]
    rows = drawn.set_index(["type", "measure"])
    means = scored.groupby(["type", "design"], sort=False)[[*MEASURES, "score"]].mean().sort_index()
    cells, kinds = list(dict.fromkeys(scored["design"]))[:MOST_DESIGNS], types_of(scored)
    names = short_names(cells)
    with house_style():
        size = PANEL * len(kinds) + 0.8 + inches(names.values()), PANEL * len(MEASURES) + 0.4
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(MEASURES), len(kinds), sharey="col", squeeze=False)
        for i, (measure, words) in enumerate(MEASURES.items()):
            for j, kind in enumerate(kinds):
                _panel(panels[i, j], means.loc[kind], measure, cells)
                panels[i, j].set_xlabel(words)
                rho = _rho(rows.loc[(kind, measure)]) if (kind, measure) in rows.index else ""
                panels[i, j].set_title(f"{kind}\n{rho}" if i == 0 else rho)
            panels[i, 0].set_ylabel("score")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, [names[label] for label in labels], loc="outside right center")
    caption = (
        f"Score on each task type against a measure of the vectors of that type's texts, one mark a cell ("
        f"{GROUPS[group]}, seeds averaged); above each panel Spearman's rho over the {drawn['n'].max()} cells with its "
        f"95 % interval. Vectors: {over}."
    )
    alt = f"Marks of score against geometry; {drawn['told'].sum()} of {len(drawn)} panels have an interval without 0."
    return Drawing("geometry_scores", "Geometry and score", caption, alt, figure)


def _panel(axes: Any, means: pd.DataFrame, measure: str, cells: list[str]) -> None:
    for k, cell in enumerate(cells):
        if cell in means.index:
            look = {"marker": mark(k).shape, "color": mark(k).colour, "linestyle": "none", "markersize": 5}
            axes.plot([means.loc[cell, measure]], [means.loc[cell, "score"]], label=cell, **look)
    axes.margins(0.14)
    axes.locator_params(nbins=4)
    axes.grid()


def _rho(row: Any) -> str:
    if isnan(row["rho"]):
        return ""
    ends = f" [{signed(row['low'], 2)}, {signed(row['high'], 2)}]" if not isnan(row["low"]) else ""
    return f"{signed(row['rho'], 2)}{ends}"
