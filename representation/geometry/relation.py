"""Does the geometry of a cell go with its score? Rank correlations over cells, each with an interval."""

from math import isnan
from typing import TYPE_CHECKING

from analysis.formats import signed
from analysis.tables.grid import Cell, Grid
from representation.geometry.rank_correlation import FEWEST, Correlation, least_told, spearman
from representation.geometry.tables import MEASURES, types_of

if TYPE_CHECKING:
    import pandas as pd

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
