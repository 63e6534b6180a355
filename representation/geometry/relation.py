"""Does the geometry of a cell go with its score? Rank correlations over cells, each with an interval."""

from dataclasses import dataclass
from math import atanh, isnan, nan, sqrt, tanh
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from representation.texts import Texts

if TYPE_CHECKING:
    import pandas as pd


MEASURES = {
    "anisotropy": "Anisotropy",
    "uniformity": "Uniformity",
    "effective_rank": "Effective rank",
    "centred_effective_rank": "Effective rank, centred",
    "alignment": "Alignment",
}


def geometry_grids(table: "pd.DataFrame", texts: Texts) -> list[Grid]:
    """Return the table over all types, then the types one by one. table: see `representation.geometry.geometry`."""
    numbers = table.groupby("encoder", sort=False)[list(MEASURES)].mean()
    rows = [[Cell(str(label)), *(_number(name, own[name]) for name in MEASURES)] for label, own in numbers.iterrows()]
    caption = (
        f"Each measure of an encoder's vectors, mean over task types; {texts.over}; alignment over {len(texts.pairs)} "
        "pairs of a query and a document relevant to it."
    )
    whole = Grid("geometry-encoders", caption, ["Encoder", *MEASURES.values()], rows, title="Geometry of each encoder")
    return [whole, _by_type(table, texts)]


def _by_type(table: "pd.DataFrame", texts: Texts) -> Grid:
    own = [name for name in MEASURES if name != "alignment"]
    rows = []
    for _, group in table.groupby("encoder", sort=False):
        for k, (_, line) in enumerate(group.iterrows()):
            scored = "-" if isnan(line["score"]) else score(line["score"])
            first = Cell(line["encoder"] if k == 0 else "")
            rows.append([first, Cell(line["type"]), *(_number(name, line[name]) for name in own), Cell(scored)])
    caption = (
        f"The measures by task type, over {texts.over}, and the score on that type where there is one: mean over the "
        "tasks that all of them were scored on."
    )
    header = ["Encoder", "Task type", *(MEASURES[name] for name in own), "Score"]
    return Grid("geometry-types", caption, header, rows, left=2, title="Geometry by task type")


def types_of(table: "pd.DataFrame") -> list[str]:
    """The task types in the order of the table."""
    return list(dict.fromkeys(table["type"]))


def _number(name: str, value: float) -> Cell:
    if isnan(value):
        return Cell("-")
    return Cell(f"{value:.1f}" if name.endswith("rank") else score(value, 3))


FEWEST = 4  # cells: with three the interval is endless


@dataclass(frozen=True)
class Correlation:
    """`rho` over `n` cells and the interval of its level; NaN where one side does not vary, or cells are too few."""

    rho: float
    low: float
    high: float
    n: int

    @property
    def told(self) -> bool:
        """Whether the interval leaves 0 out."""
        return not isnan(self.low) and not self.low <= 0 <= self.high


def least_told(n: int, alpha: float = 0.05) -> float | None:
    """The smallest |rho| of n cells without ties whose interval leaves 0 out; None where not even 1 does."""
    if n < FEWEST:
        return None
    each = (1 - k * _step(n) for k in range(int(1 / _step(n)), -1, -1))
    return next((rho for rho in each if _interval(rho, n, alpha)[0] > 0), None)


def spearman(first: ArrayLike, second: ArrayLike, alpha: float = 0.05) -> Correlation:
    """Spearman's rho with the interval of Bonett and Wright (2000), "Sample size requirements for estimating Pearson,
    Kendall and Spearman correlations": Fisher's z with standard error sqrt((1 + rho^2 / 2) / (n - 3)).

    A bootstrap over so few cells draws the same cell again and again, and its intervals are too short. At rho = +-1
    z is endless, so the interval is of the largest rho short of 1 that n cells without ties can have.
    """
    from scipy.stats import rankdata

    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(nan, nan, nan, n)
    rho = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
    if n < FEWEST:
        return Correlation(rho, nan, nan, n)
    return Correlation(rho, *_interval(rho, n, alpha), n)


def _interval(rho: float, n: int, alpha: float) -> tuple[float, float]:
    from scipy.stats import norm

    bounded = min(max(rho, -1 + _step(n)), 1 - _step(n))
    reach = float(norm.ppf(1 - alpha / 2)) * sqrt((1 + bounded**2 / 2) / (n - 3))
    return min(rho, tanh(atanh(bounded) - reach)), max(rho, tanh(atanh(bounded) + reach))


def _step(n: int) -> float:
    """How far below 1 the next rho is: 6 * 2 / (n^3 - n), two neighbours of a ranking exchanged."""
    return 12 / (n**3 - n)


GROUPS = {True: "trained", False: "untrained"}


def relation(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return one row a (trained or untrained, type, measure): rho over cells, its 95 % interval, n, told.

    table: see `representation.geometry.geometry`. A cell is a design, its seeds averaged, since they are no cells of
    their own; runs and starts apart, since training moves both geometry and score, which would pass for a relation
    between cells.
    Encoders without a score are left out; no row where fewer than three cells are left.
    """
    import pandas as pd

    rows = []
    scored = table.dropna(subset=["score"])
    for trained, own in scored.groupby("trained", sort=False):
        for kind in types_of(own):
            cells = own[own["type"] == kind].groupby("design", sort=False)[[*MEASURES, "score"]].mean()
            if len(cells) < 3:
                continue
            for measure in MEASURES:
                found = spearman(cells[measure], cells["score"])
                rows.append((GROUPS[bool(trained)], kind, measure, *_fields(found)))
    return pd.DataFrame(rows, columns=["cells", "type", "measure", "rho", "low", "high", "n", "told"])


def _fields(found: Correlation) -> tuple[float, float, float, int, bool]:
    return found.rho, found.low, found.high, found.n, found.told


def relation_grid(found: "pd.DataFrame", over: str) -> Grid:
    """A row a (group, type), a column a measure: rho, its interval below, a star where the interval leaves 0 out."""
    rows = []
    for (cells, kind), own in found.groupby(["cells", "type"], sort=False):
        by_measure = own.set_index("measure")
        row = [Cell(f"{cells} (n = {own['n'].iloc[0]})"), Cell(str(kind))]
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


def relation_notes(found: "pd.DataFrame") -> list[str]:
    """What can and what cannot be told from so many cells."""
    notes = []
    for cells, own in found.groupby("cells", sort=False):
        n, told = int(own["n"].min()), own[own["told"]]
        kept = len(own) - len(told)
        if n < FEWEST:
            notes.append(f"Geometry and score, {cells}: with {n} cells there is no interval, so nothing can be told.")
            continue
        least = least_told(n)
        reach = (
            f"with {n} cells only |rho| of at least {least:.2f} would leave 0 out"
            if least is not None
            else f"with {n} cells the interval of even a perfect order holds 0"
        )
        line = f"Geometry and score, {cells}: {kept} of {len(own)} intervals hold 0: there the relation cannot "
        line += f"be told from {n} cells ({reach})."
        if len(told):
            named = [
                f"{MEASURES[m]} on {t} ({signed(r, 2)})"
                for m, t, r in zip(told["measure"], told["type"], told["rho"], strict=True)
            ]
            line += f" Those that leave 0 out: {'; '.join(named)}; of {len(own)} intervals about "
            line += f"{0.05 * len(own):.0f} would do so by chance, and types share cells and texts."
        notes.append(line)
    return notes
