"""Friedman's tests and average ranks -> grids."""

from typing import TYPE_CHECKING

import numpy as np

from analysis.factorial.effect_tables import f_value
from analysis.formats import equals, fraction, score
from analysis.settings import Settings
from analysis.statistics.correction import passes
from analysis.tables.grid import Cell, Grid

if TYPE_CHECKING:
    import pandas as pd

MOST_GROUPS = 8  # with more, a cell would hold a row of letters that nobody reads


def friedman_grid(table: "pd.DataFrame", settings: Settings) -> Grid:
    """One row a task type: both statistics with their degrees of freedom and p, the permutation p, W, and the CD."""
    rows = [_friedman_row(row, settings.alpha) for _, row in table.head(settings.rows_shown).iterrows()]
    header = ["Task type", "n", "Friedman chi2", "Iman-Davenport F", "p by permutation", "Kendall's W", "CD"]
    rest = f"The first {len(rows)} of {len(table)} rows; friedman.csv has all." if len(table) > len(rows) else ""
    title = "All designs at once: Friedman's test"
    return Grid("friedman", _friedman_caption(table, settings), header, rows, rest=rest, title=title)


def _friedman_row(row: "pd.Series", alpha: float) -> list[Cell]:
    """The star is with the p to report: of the permutations, or of F where none were made."""
    permuted = not np.isnan(row["p_permutation"])
    star = "*" if passes(np.array(row["p_permutation" if permuted else "p_f"]), alpha) else ""
    chi2 = Cell(f_value(row["chi2"]), below=(f"df {row['df']}; p {equals(row['p_chi2'])}",))
    below = (f"df {row['df1']}, {row['df2']}; p {equals(row['p_f'])}",)
    f = Cell(f_value(row["f"]), mark="" if permuted else star, below=below)
    exact = ("exact",) if row["exact"] else ()
    if row["p_min"] > alpha * (1 + 1e-9):  # nan where it is not known, and then it is small
        exact = (f"n.a.: p >= {fraction(row['p_min'])}",)
    p = Cell(fraction(row["p_permutation"]), mark=star, below=exact) if permuted else Cell("-")
    sizes = (Cell(score(row["w"], 3)), Cell(f"{row['cd']:.2f}"))
    return [Cell(row["type"]), Cell(str(row["n_tasks"])), chi2, f, p, *sizes]


def _friedman_caption(table: "pd.DataFrame", settings: Settings) -> str:
    drawn = sorted({int(count) for count in table["permutations"]} - {0})
    random = f"{' or '.join(f'{count:,}' for count in drawn)} random ones (seed 0)"
    how = " and ".join((["all of them (exact)"] if table["exact"].any() else []) + ([random] if drawn else []))
    none = "; - = more than 2,000 scores, for which F's p holds" if table["p_permutation"].isna().any() else ""
    if (table["p_min"] > settings.alpha).any():
        none += f"; n.a. = {fraction(settings.alpha)} cannot be reached, whatever the scores"
    return (
        f"Friedman's test of {table['n_designs'].iloc[0]} designs ranked within each task, ties by midranks and"
        " corrected; F of Iman and Davenport; p by permutation of each task's ranks"
        + (f": {how}" if how else "")
        + f"; no correction over task types. Kendall's W: 0 = the tasks rank at random, 1 = all alike. CD: Nemenyi's"
        f" critical difference of average ranks at {fraction(settings.alpha)}. * = p by permutation, or where there is"
        f" none of F, at most {fraction(settings.alpha)}{none}."
    )


def ranks_grid(table: "pd.DataFrame", control: str, settings: Settings) -> Grid:
    """One row per design, the best average rank on the last block first; below a rank the letters of its groups.

    `control`: the design that `against=` names, from which others may differ by a star; without one there are no stars.
    """
    kinds = list(dict.fromkeys(table["type"]))
    blocks = {kind: table[table["type"] == kind].set_index("design") for kind in kinds}
    ordered = blocks[kinds[-1]]["average_rank"].sort_values(kind="stable").index.tolist()
    lettered = bool((table["n_groups"] <= MOST_GROUPS).all())
    levels = {kind: sorted(set(block["average_rank"]))[:2] for kind, block in blocks.items()}
    rows = []
    for design in ordered[: settings.rows_shown]:
        cells = [_rank_cell(blocks[kind].loc[design], levels[kind], lettered, settings.alpha) for kind in kinds]
        rows.append([Cell(design), *cells])
    header = ["Design", *[f"{kind} (n = {blocks[kind]['n_tasks'].iloc[0]})" for kind in kinds]]
    rest = f"The best {len(rows)} of {len(ordered)} designs; ranks.csv has all." if len(ordered) > len(rows) else ""
    alpha = fraction(settings.alpha)
    groups = (
        f"Designs that share a letter differ by less than Nemenyi's critical difference at {alpha}."
        if lettered
        else "Two designs differ at that level where their ranks differ by the CD of the table before or more."
    )
    caption = f"Average rank over tasks (1 = best of {len(ordered)}), best first. {groups}"
    if control:
        caption += (
            f" * = average rank differs from that of {control} at {alpha}: z of the rank difference (Demsar 2006), Holm"
            f" over {len(ordered) - 1} comparisons with it."
        )
    return Grid("ranks", caption, header, rows, rest=rest, title="Average ranks")


def _rank_cell(row: "pd.Series", levels: list[float], lettered: bool, alpha: float) -> Cell:
    rank = row["average_rank"]
    style = ("best", "second")[levels.index(rank)] if rank in levels and len(levels) > 1 else ""
    # nan, of the control itself, does not pass
    mark = "*" if passes(np.array(row.get("p_holm", np.nan)), alpha) else ""
    return Cell(f"{rank:.2f}", style, mark, below=(row["groups"],) if lettered else ())
