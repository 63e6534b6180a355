"""Rank correlations between the geometry of cells and their scores, each with an interval."""

from dataclasses import asdict, dataclass
from itertools import product
from math import atanh, isnan, nan, sqrt, tanh
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import MOST_DESIGNS
from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from representation.figures import legend, look
from representation.texts import Texts

MEASURES = {
    "anisotropy": "Anisotropy",
    "uniformity": "Uniformity",
    "effective_rank": "Effective rank",
    "centred_effective_rank": "Effective rank, centred",
    "alignment": "Alignment",
}
GROUPS = {True: "trained", False: "untrained"}
FEWEST = 4  # cells: with three the interval is endless
PANEL = 1.6  # inches


def geometry_grids(table: pd.DataFrame, texts: Texts) -> list[Grid]:
    """Return the table over all types, then the types one by one. table: see `representation.geometry.geometry`."""
    numbers = table.groupby("encoder", sort=False)[list(MEASURES)].mean()
    rows = [[Cell(str(label)), *(_number(name, row[name]) for name in MEASURES)] for label, row in numbers.iterrows()]
    caption = (
        f"Each measure of an encoder's vectors, mean over task types; {texts.over}; alignment over {len(texts.pairs)} "
        "pairs of a query and a document relevant to it."
    )
    of_types = [name for name in MEASURES if name != "alignment"]
    by_type = []
    for _, group in table.groupby("encoder", sort=False):
        for k, (_, line) in enumerate(group.iterrows()):
            scored = Cell("-" if isnan(line["score"]) else score(line["score"]))
            about = [Cell(line["encoder"] if k == 0 else ""), Cell(line["type"])]
            by_type.append([*about, *(_number(name, line[name]) for name in of_types), scored])
    caption_by_type = (
        f"The measures by task type, over {texts.over}, and the score on that type where there is one: mean over the "
        "tasks that all of them were scored on."
    )
    header = ["Encoder", "Task type", *(MEASURES[name] for name in of_types), "Score"]
    return [
        Grid("geometry-encoders", caption, ["Encoder", *MEASURES.values()], rows, title="Geometry of each encoder"),
        Grid("geometry-types", caption_by_type, header, by_type, left=2, title="Geometry by task type"),
    ]


def _number(name: str, value: float) -> Cell:
    if isnan(value):
        return Cell("-")
    return Cell(f"{value:.1f}" if name.endswith("rank") else score(value, 3))


@dataclass(frozen=True)
class Correlation:
    """`rho` over `n` cells and the interval of its level; NaN where one side does not vary, or cells are too few."""

    rho: float
    low: float
    high: float
    n: int

    @property
    def told(self) -> bool:
        """Return whether the interval leaves 0 out."""
        return not isnan(self.low) and not self.low <= 0 <= self.high


def least_told(n: int) -> float | None:
    """Return the smallest |rho| of n cells without ties whose interval leaves 0 out; None where not even 1 does."""
    if n < FEWEST:
        return None
    each = (1 - k * _step(n) for k in range(int(1 / _step(n)), -1, -1))
    return next((rho for rho in each if _interval(rho, n, 0.05)[0] > 0), None)


def spearman(first: ArrayLike, second: ArrayLike, alpha: float = 0.05) -> Correlation:
    """Spearman's rho with the interval of Bonett and Wright (2000), "Sample size requirements for estimating Pearson,
    Kendall and Spearman correlations": Fisher's z with standard error sqrt((1 + rho^2 / 2) / (n - 3)).

    A bootstrap over so few cells draws the same cell again and again, and its intervals are too short. At rho = +-1
    z is endless, so the interval is of the largest rho short of 1 that n cells without ties can have.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(nan, nan, nan, n)
    rho = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
    if n < FEWEST:
        return Correlation(rho, nan, nan, n)
    return Correlation(rho, *_interval(rho, n, alpha), n)


def _interval(rho: float, n: int, alpha: float) -> tuple[float, float]:
    bounded = min(max(rho, -1 + _step(n)), 1 - _step(n))
    reach = float(norm.ppf(1 - alpha / 2)) * sqrt((1 + bounded**2 / 2) / (n - 3))
    return min(rho, tanh(atanh(bounded) - reach)), max(rho, tanh(atanh(bounded) + reach))


def _step(n: int) -> float:
    """Return the distance from 1 to the next rho: 6 * 2 / (n^3 - n), two neighbours of a ranking exchanged."""
    return 12 / (n**3 - n)


def relation(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per (trained or untrained, type, measure): rho over cells, its 95 % interval, n, told.

    table: see `representation.geometry.geometry`. A cell is a design, its seeds averaged. Runs and starts are apart:
    training moves both geometry and score, which would pass for a relation between cells. Encoders without a score are
    left out; no row where fewer than three cells are left.
    """
    rows = []
    scored = table.dropna(subset=["score"])
    for trained, group in scored.groupby("trained", sort=False):
        for kind in group["type"].unique():
            cells = group[group["type"] == kind].groupby("design", sort=False)[[*MEASURES, "score"]].mean()
            for measure in MEASURES if len(cells) > 2 else ():
                rank = spearman(cells[measure], cells["score"])
                about = {"cells": GROUPS[bool(trained)], "type": kind, "measure": measure}
                rows.append(about | asdict(rank) | {"told": rank.told})
    return pd.DataFrame(rows, columns=["cells", "type", "measure", "rho", "low", "high", "n", "told"])


def relation_grid(correlations: pd.DataFrame, over: str) -> Grid:
    """One row per (group, type), one column per measure: rho, its interval below, a star where it leaves 0 out."""
    rows = []
    for (cells, kind), group in correlations.groupby(["cells", "type"], sort=False):
        by_measure = group.set_index("measure")
        row = [Cell(f"{cells} (n = {group['n'].iloc[0]})"), Cell(str(kind))]
        for measure in MEASURES:
            rho, low, high, told = by_measure.loc[measure, ["rho", "low", "high", "told"]]
            between = f"{signed(low, 2)} to {signed(high, 2)}" if not isnan(low) else "no interval"
            row.append(Cell("n.a." if isnan(rho) else signed(rho, 2), mark="*" if told else "", below=(between,)))
        rows.append(row)
    caption = (
        "Spearman's rho between a measure of the vectors of a task type's texts and the score on that type, over cells "
        "(designs, seeds averaged), and its 95 % interval (Bonett and Wright 2000); * = the interval leaves 0 out. "
        f"Vectors: {over}."
    )
    header = ["Cells", "Task type", *MEASURES.values()]
    return Grid("geometry-relation", caption, header, rows, left=2, title="Geometry and score")


def relation_notes(correlations: pd.DataFrame) -> list[str]:
    """Return sentences on what can and what cannot be told from so many cells."""
    return [_note(str(cells), group) for cells, group in correlations.groupby("cells", sort=False)]


def _note(cells: str, group: pd.DataFrame) -> str:
    n, told = int(group["n"].min()), group[group["told"]]
    if n < FEWEST:
        return f"Geometry and score, {cells}: with {n} cells there is no interval, so nothing can be told."
    least = least_told(n)
    reach = (
        f"with {n} cells only |rho| of at least {least:.2f} would leave 0 out"
        if least is not None
        else f"with {n} cells the interval of even a perfect order holds 0"
    )
    note = (
        f"Geometry and score, {cells}: {len(group) - len(told)} of {len(group)} intervals hold 0: there the relation "
        f"cannot be told from {n} cells ({reach})."
    )
    if len(told):
        rows = zip(told["measure"], told["type"], told["rho"], strict=True)
        named = "; ".join(f"{MEASURES[measure]} on {kind} ({signed(rho, 2)})" for measure, kind, rho in rows)
        note += (
            f" Those that leave 0 out: {named}; of {len(group)} intervals about {0.05 * len(group):.0f} would do so by "
            "chance, and types share cells and texts."
        )
    return note


def geometry_drawings(table: pd.DataFrame, correlations: pd.DataFrame, over: str) -> list[Drawing]:
    """Draw the runs, or where none is scored the starts: both in one panel would squeeze either into a corner.

    table: of `representation.geometry.geometry`; correlations: of `relation`, not empty; over: which texts.
    """
    group = max(trained for trained, name in GROUPS.items() if name in set(correlations["cells"]))
    scored = table[(table["trained"] == group)].dropna(subset=["score"])
    drawn = correlations[correlations["cells"] == GROUPS[group]]
    rhos = {(row.type, row.measure): _rho(row) for row in drawn.itertuples()}
    means = scored.groupby(["type", "design"], sort=False)[[*MEASURES, "score"]].mean()
    cells, kinds = scored["design"].unique()[:MOST_DESIGNS], scored["type"].unique()
    names = short_names(cells)
    figure = canvas(PANEL * len(kinds) + 0.8 + inches(names.values()), PANEL * len(MEASURES) + 0.4)
    panels = figure.subplots(len(MEASURES), len(kinds), sharey="col", squeeze=False)
    for (i, measure), (j, kind) in product(enumerate(MEASURES), enumerate(kinds)):
        axes, points = panels[i, j], means.loc[kind]
        for k, cell in enumerate(cells):
            if cell in points.index:
                axes.plot(points.loc[[cell], measure], points.loc[[cell], "score"], **look(k, 5, 0), label=names[cell])
        axes.margins(0.14)
        axes.locator_params(nbins=4)
        axes.grid()
        axes.set_xlabel(MEASURES[measure])
        rho = rhos.get((kind, measure), "")
        axes.set_title(f"{kind}\n{rho}" if i == 0 else rho)
        axes.set_ylabel("score" if j == 0 else "")
    legend(figure, panels[0, 0], "outside right center")
    caption = (
        f"Score on each task type against a measure of the vectors of that type's texts, one mark per cell ("
        f"{GROUPS[group]}, seeds averaged); above each panel Spearman's rho over the {drawn['n'].max()} cells with its "
        f"95 % interval. Vectors: {over}."
    )
    alt = f"Marks of score against geometry; {drawn['told'].sum()} of {len(drawn)} panels have an interval without 0."
    return [Drawing("geometry_scores", "Geometry and score", caption, alt, figure)]


def _rho(row: Any) -> str:
    ends = f" [{signed(row.low, 2)}, {signed(row.high, 2)}]" if not isnan(row.low) else ""
    return "" if isnan(row.rho) else f"{signed(row.rho, 2)}{ends}"
