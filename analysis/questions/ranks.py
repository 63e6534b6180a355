"""All designs at once: Friedman's test on every block, then which designs differ in average rank."""

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, BLUE, LINE
from analysis.grids.formats import equals, fraction, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import pair_places
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled, rest_text
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from analysis.statistics.ranks import friedman, nemenyi_distance, nemenyi_p

PLACE = 80
MOST_NAMED = 30  # designs of the diagram, and of the table of pairs


def answer(material: Material) -> Answer | None:
    """Return the tables `friedman` and `ranks`; None with two designs, as Friedman's is then a sign test."""
    settings, matrix = material.settings, material.matrix
    if matrix.shape[1] < 3:
        return None
    tests, ranks, pairs = [], [], []
    for kind, tasks in material.blocks.items():
        if len(tasks) < 2:
            continue
        block = matrix.loc[tasks]
        test = friedman(block.to_numpy(dtype=float), settings.decimals)
        cd = nemenyi_distance(matrix.shape[1], len(tasks), settings.alpha)
        head, statistics = {"type": kind, "n_tasks": len(tasks)}, dict(vars(test))
        averages = statistics.pop("average_ranks")
        tests.append({**head, "n_designs": matrix.shape[1], **statistics, "cd": cd})
        ranks.append(pd.DataFrame({**head, "design": matrix.columns, "average_rank": averages}))
        if matrix.shape[1] <= MOST_NAMED:
            pairs.append(_rank_pairs(list(matrix.columns), head, averages))
    if not tests:
        return None
    frames = {"friedman": pd.DataFrame(tests), "ranks": pd.concat(ranks, ignore_index=True)}
    grids = [friedman_grid(frames["friedman"], settings), ranks_grid(frames["ranks"], settings)]
    if pairs:
        frames["rank_pairs"] = pd.concat(pairs, ignore_index=True)
    return Answer(
        "ranks",
        draw=lambda: critical_difference(material),
        of_scores=False,
        grids=grids,
        frames=frames,
        notes=[
            "Average ranks compare a design with all the others in the table, so Nemenyi's p change with which designs"
            " are compared (Benavoli, Corani, Mangili 2016). For two designs the signed-rank test has the last word."
        ],
    )


def _rank_pairs(designs: list[str], head: Row, averages: Floats) -> pd.DataFrame:
    (first, second), names = pair_places(designs), np.array(designs, dtype=object)
    step = averages[second] - averages[first]
    columns = {**head, "first": names[first], "second": names[second], "rank_difference": step}
    return pd.DataFrame({**columns, "p_nemenyi": nemenyi_p(step, len(designs), head["n_tasks"])})


def friedman_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row per task type: both statistics with their degrees of freedom and p, W, and the CD.

    p has no star: ranks of these runs over tasks say nothing of other seeds.
    """

    def cells(row: Row) -> list[Cell]:
        chi2 = Cell(f"{row['chi2']:.2f}", below=(f"df {row['df']}; p {equals(row['p_chi2'])}",))
        f = Cell(f"{row['f']:.2f}", below=(f"df {row['df1']}, {row['df2']}; p {equals(row['p_f'])}",))
        sizes = map(Cell, (score(row["w"], 3), f"{row['cd']:.2f}"))
        return [Cell(row["type"]), Cell(str(row["n_tasks"])), chi2, f, *sizes]

    caption = (
        f"Friedman's test of {table['n_designs'].iloc[0]} designs ranked within each task, ties by midranks and"
        " corrected; F of Iman and Davenport; no correction over task types. Kendall's W: 0 = the tasks rank at random,"
        f" 1 = all alike. CD: Nemenyi's critical difference of average ranks at {fraction(settings.alpha)}. No star:"
        " ranks of these runs say nothing of other seeds."
    )
    header = ["Task type", "n", "Friedman chi2", "Iman-Davenport F", "Kendall's W", "CD"]
    grid = Grid("friedman", caption, header, title="All designs at once: Friedman's test")
    return filled(grid, table, cells, settings.rows_shown, "rows; friedman.csv has all.")


def ranks_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row per design, the best average rank on the last block first."""
    wide = table.pivot(index="design", columns="type", values="average_rank")[list(table["type"].unique())]
    ordered, sizes = wide.sort_values(wide.columns[-1], kind="stable"), table.groupby("type")["n_tasks"].first()
    levels = {kind: sorted(set(wide[kind]))[:2] for kind in wide}
    rows = []
    for name, ranks in ordered.head(settings.rows_shown).iterrows():
        rows.append([Cell(str(name)), *(_rank_cell(rank, levels[kind]) for kind, rank in ranks.items())])
    caption = (
        f"Average rank over tasks (1 = best of {len(ordered)}), best first. Two designs differ at"
        f" {fraction(settings.alpha)} where their ranks differ by the CD of the table before or more."
    )
    rest = rest_text(len(rows), len(ordered), "designs; ranks.csv has all.", "best")
    header = ["Design", *[f"{kind} (n = {sizes[kind]})" for kind in wide]]
    return Grid("ranks", caption, header, rows, rest=rest, title="Average ranks")


def _rank_cell(rank: float, levels: list[float]) -> Cell:
    style = ("best", "second")[levels.index(rank)] if rank in levels and len(levels) > 1 else ""
    return Cell(f"{rank:.2f}", style)


def critical_difference(material: Material) -> list[Drawing]:
    """Return the diagram of Demsar (2006, figure 1): mean ranks on a line, bars over designs that do not differ."""
    from scikit_posthocs import critical_difference_diagram

    settings, (designs, sentence) = material.settings, material.highest(MOST_NAMED)
    names, matrix = short_names(designs), material.matrix
    averages = friedman(matrix.to_numpy(dtype=float), settings.decimals).average_ranks
    ranks = pd.Series(averages, index=matrix.columns)[designs].rename(names)
    cd = nemenyi_distance(len(averages), len(matrix), settings.alpha)
    joined = pd.DataFrame({name: 1.0 * ((ranks - rank).abs() < cd) for name, rank in ranks.items()})
    figure = canvas(2 * inches(names.values()) + 5.0, 0.8 + LINE * 1.5 * len(designs))
    axes = figure.add_subplot()
    axes.spines.top.set_visible(True)
    critical_difference_diagram(
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
    caption = (
        f"Mean ranks over {material.over} (1 is best). Bars join designs that do not differ by Nemenyi's test at"
        f" {fraction(settings.alpha)}, whose ranks differ by less than {cd:.2f}. {sentence}"
    ).strip()
    best = ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.sort_values().head(10).items())
    return [Drawing("critical_difference", "Critical-difference diagram", caption, figure, f"Mean ranks: {best}.")]
