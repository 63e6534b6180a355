"""The table of `cluster=`: each pair with tasks and with clusters of tasks as units."""

from typing import TYPE_CHECKING

import numpy as np

from analysis.formats import fraction, percent, signed
from analysis.sections.section import Material
from analysis.sections.seeds import ends
from analysis.settings import Settings
from analysis.statistics.correction import correction_name, passes
from analysis.statistics.sign_flip import EXACT_UP_TO
from analysis.tables.grid import Cell, Grid

if TYPE_CHECKING:
    import pandas as pd


def cluster_grid(frame: "pd.DataFrame", shared: dict[str, int], material: Material) -> Grid:
    """One row per pair of the last block that has clusters; each p stands behind the difference that it belongs to."""
    settings = material.settings
    kind = list(shared)[-1]
    rows = frame[frame["type"] == kind]
    cells = []
    for _, row in rows.head(settings.rows_shown).iterrows():
        both = [ends(row, name) for name in ("tasks", "clusters")]
        tests = [_tested(row["p_tasks"], row["p_adjusted_tasks"], "yes", 0.0, settings)]
        tests.append(_tested(row["p"], row["p_adjusted"], row["reachable"], row["p_min_adjusted"], settings))
        tests.append(
            _tested(row["p_flip"], row["p_adjusted_flip"], row["reachable_flip"], row["p_min_adjusted_flip"], settings)
        )
        names = ("hodges_lehmann_tasks", "hodges_lehmann_clusters", "difference_tasks")
        sized = [cell for name, test in zip(names, tests, strict=True) for cell in (Cell(signed(row[name])), test)]
        cells.append([Cell(f"{row['second']} - {row['first']}"), *sized, *map(Cell, both)])
    n, units = rows["n_tasks"].iloc[0], rows["n_clusters"].iloc[0]
    header = ["Pair (second - first)", "HL", f"p (n = {n} tasks)", "HL", f"p (n = {units} clusters)", "Mean", "p flips"]
    level = percent(settings.alpha)
    header += [f"{level} tasks", f"{level} clusters"]
    rest = f"The first {len(cells)} of {len(rows)} pairs; clusters.csv has all." if len(rows) > len(cells) else ""
    return Grid("clusters", _caption(rows, settings), header, cells, rest=rest, title="Tasks and clusters")


def _tested(p: float, adjusted: float, reachable: str, least: float, settings: Settings) -> Cell:
    if reachable != "yes":
        return Cell(fraction(p), below=(f"n.a.: p >= {fraction(least)}",))
    mark = "*" if passes(np.array(adjusted), settings.alpha) else ""
    return Cell(fraction(p), mark=mark, below=() if settings.correction == "none" else (fraction(adjusted),))


def _caption(rows: "pd.DataFrame", settings: Settings) -> str:
    n, units, kind = rows["n_tasks"].iloc[0], rows["n_clusters"].iloc[0], rows["type"].iloc[0]
    what = f"all {n} tasks" if kind == "All" else f"the {n} {kind} tasks"
    how = "all" if rows["flips_exact"].iloc[0] else f"{rows['flips'].iloc[0]:,} random"
    corrected_by = (
        f", in brackets after {correction_name(settings.correction)}" if settings.correction != "none" else ""
    )
    intervals = (
        f"; {percent(settings.alpha)} intervals of the mean over tasks: Student's t with tasks as units, as for the"
        " pairs, and with clusters as units (error and degrees of freedom of Bell and McCaffrey)"
    )
    return (
        f"The pairs over {what}, which come from {units} clusters (cluster={settings.cluster}). Each p belongs to the"
        " difference before it: Hodges-Lehmann (HL) with the two-sided exact Wilcoxon signed-rank test, with tasks as"
        " units and with clusters as units (mean difference of each); mean over tasks with the sign-flip permutation of"
        f" whole clusters ({how} patterns; exact up to {EXACT_UP_TO} clusters){corrected_by}{intervals}."
        f" * = at most {fraction(settings.alpha)}{'' if settings.correction == 'none' else ' after the correction'};"
        " n.a. = so few clusters that it cannot be reached."
    )
