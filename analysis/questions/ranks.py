"""All designs at once: Friedman's test on every block, then which designs differ in average rank."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.grids.formats import equals, fraction, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import pair_places
from analysis.questions.critical_difference import critical_difference
from analysis.questions.effects import f_value
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled, rest_text
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from analysis.statistics.correction import passes
from analysis.statistics.friedman import friedman
from analysis.statistics.ranks import against_control, cliques, letters, nemenyi_distance, nemenyi_p, task_ranks

PLACE = 80
METHODS = (
    "All designs together were compared by Friedman's test on the ranks within tasks [@friedman1937] with the F of Iman"
    " and Davenport [@iman1980]; average ranks that differ by less than Nemenyi's critical difference [@nemenyi1963;"
    " @demsar2006] are not told apart."
)
MOST_PAIRS = 1_000  # a block; of more pairs only the critical difference is given, which says the same
MOST_GROUPS = 8  # with more, a cell would hold a row of letters that nobody reads


def answer(material: Material) -> Answer | None:
    """Return the tables `friedman` and `ranks`; with two designs only a note, as Friedman's is then a sign test."""
    settings, matrix = material.settings, material.matrix
    designs = [str(name) for name in matrix.columns]
    if len(designs) < 3:
        note = "Friedman's test and average ranks need three designs; for two see the pairs."
        return Answer("ranks", notes=[note], aside=True)
    few = math.comb(len(designs), 2) <= MOST_PAIRS
    tests, ranks, pairs = [], [], []
    for kind, tasks in material.blocks.items():
        n = len(tasks)
        if n < 2:
            continue
        test = friedman(task_ranks(matrix.loc[tasks].to_numpy(dtype=float), settings.decimals))
        averages = test.average_ranks
        head, cd = {"type": kind, "n_tasks": n}, nemenyi_distance(len(designs), n, settings.alpha)
        statistics = {name: value for name, value in vars(test).items() if name != "average_ranks"}
        tests.append({**head, "n_designs": len(designs), **statistics, "cd": cd})
        ranks.append(_rank_table(head, designs, averages, cd=cd, control=material.control))
        if few:
            (first, second), names = pair_places(designs), np.array(designs, dtype=object)
            step = averages[second] - averages[first]
            columns = {**head, "first": names[first], "second": names[second], "rank_difference": step}
            pairs.append(pd.DataFrame({**columns, "p_nemenyi": nemenyi_p(step, len(designs), n)}))
    table, by_design = pd.DataFrame(tests), pd.concat(ranks, ignore_index=True)
    frames = {"friedman": table, "ranks": by_design}
    if few:
        frames["rank_pairs"] = pd.concat(pairs, ignore_index=True)
    return Answer(
        "ranks",
        methods=[METHODS],
        draw=lambda: critical_difference(material),
        of_scores=False,
        grids=[friedman_grid(table, settings), ranks_grid(by_design, material.control, settings)],
        frames=frames,
        notes=list(_notes(material, table, few)),
    )


def _rank_table(head: Row, designs: list[str], averages: Floats, *, cd: float, control: str) -> pd.DataFrame:
    groups = cliques(averages, cd)
    columns = head | {"design": designs, "average_rank": averages}
    columns |= {"n_groups": len(groups), "groups": letters(groups, len(designs))}
    if control:  # none is taken that nobody named
        columns |= {"control": control, **against_control(averages, head["n_tasks"], designs.index(control))}
    return pd.DataFrame(columns)


def friedman_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row per task type: both statistics with their degrees of freedom and p, the permutation p, W, and the CD.

    p has no star: ranks of these runs over tasks say nothing of other seeds.
    """

    def cells(row: Row) -> list[Cell]:
        permuted = not math.isnan(row["p_permutation"])
        chi2 = Cell(f_value(row["chi2"]), below=(f"df {row['df']}; p {equals(row['p_chi2'])}",))
        below = (f"df {row['df1']}, {row['df2']}; p {equals(row['p_f'])}",)
        f = Cell(f_value(row["f"]), below=below)
        exact = ("exact",) if row["exact"] else ()
        if row["p_min"] > settings.alpha * (1 + 1e-9):  # nan where it is not known, and then it is small
            exact = (f"n.a.: p >= {fraction(row['p_min'])}",)
        p = Cell(fraction(row["p_permutation"]), below=exact) if permuted else Cell("-")
        sizes = map(Cell, (score(row["w"], 3), f"{row['cd']:.2f}"))
        return [Cell(row["type"]), Cell(str(row["n_tasks"])), chi2, f, p, *sizes]

    header = ["Task type", "n", "Friedman chi2", "Iman-Davenport F", "p by permutation", "Kendall's W", "CD"]
    title = "All designs at once: Friedman's test"
    grid = Grid("friedman", _friedman_caption(table, settings), header, title=title)
    return filled(grid, table, cells, settings.rows_shown, "rows; friedman.csv has all.")


def _friedman_caption(table: pd.DataFrame, settings: Settings) -> str:
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
        f" critical difference of average ranks at {fraction(settings.alpha)}. No star: ranks of these runs say"
        f" nothing of other seeds{none}."
    )


def ranks_grid(table: pd.DataFrame, control: str, settings: Settings) -> Grid:
    """One row per design, the best average rank on the last block first; below a rank the letters of its groups.

    `control`: the design that `against=` names; then below a rank p of its difference from the control's, too.
    """
    kinds = list(dict.fromkeys(table["type"]))
    blocks = {kind: table[table["type"] == kind].set_index("design") for kind in kinds}
    ordered = blocks[kinds[-1]]["average_rank"].sort_values(kind="stable").index.tolist()
    lettered = bool((table["n_groups"] <= MOST_GROUPS).all())
    levels = {kind: sorted(set(block["average_rank"]))[:2] for kind, block in blocks.items()}
    rows = []
    for name in ordered[: settings.rows_shown]:
        cells = (_rank_cell(blocks[kind].loc[name], levels[kind], lettered) for kind in kinds)
        rows.append([Cell(name), *cells])
    header = ["Design", *[f"{kind} (n = {blocks[kind]['n_tasks'].iloc[0]})" for kind in kinds]]
    rest = rest_text(len(rows), len(ordered), "designs; ranks.csv has all.", "best")
    alpha = fraction(settings.alpha)
    groups = (
        f"Designs that share a letter differ by less than Nemenyi's critical difference at {alpha}."
        if lettered
        else "Two designs differ at that level where their ranks differ by the CD of the table before or more."
    )
    caption = f"Average rank over tasks (1 = best of {len(ordered)}), best first. {groups}"
    if control:
        caption += (
            f" p: of the difference from the average rank of {control}, z (Demsar 2006), Holm over {len(ordered) - 1}"
            " comparisons with it."
        )
    return Grid("ranks", caption, header, rows, rest=rest, title="Average ranks")


def _rank_cell(row: pd.Series, levels: list[float], lettered: bool) -> Cell:
    rank = row["average_rank"]
    style = ("best", "second")[levels.index(rank)] if rank in levels and len(levels) > 1 else ""
    p = row.get("p_holm", np.nan)  # nan of the control itself
    below = [row["groups"]] if lettered else []
    return Cell(f"{rank:.2f}", style, below=(*below, *([] if np.isnan(p) else [f"p {fraction(p)}"])))


def _notes(material: Material, table: pd.DataFrame, listed: bool) -> Iterator[str]:
    marks = "Nemenyi's groups and Holm's p" if material.control else "Nemenyi's groups"
    yield (
        f"Average ranks compare a design with all the others in the table, so {marks} change with which designs are"
        " compared, and keep their level only where all are alike (Benavoli, Corani, Mangili 2016). For two designs the"
        " signed-rank test of the pair has the last word."
    )
    alpha = material.settings.alpha
    p = table["p_permutation"].fillna(table["p_f"]).to_numpy()
    open_blocks = table.loc[~passes(p, alpha), "type"].tolist()
    if open_blocks:
        yield (
            f"Friedman's test does not reject at {fraction(alpha)} on {', '.join(open_blocks)}: there no difference of"
            " average ranks is to be read as one of the designs."
        )
    wide = table.loc[table["cd"] > table["n_designs"] - 1, "type"].tolist()
    if wide:
        yield f"The critical difference is larger than any difference of ranks on {', '.join(wide)}: too few tasks."
    single = [kind for kind, tasks in material.blocks.items() if len(tasks) < 2]
    if single:
        yield f"One task has no distribution of ranks: {', '.join(single)} left out of the rank tables."
    if not listed:
        yield "Nemenyi's p of each pair is left out with so many designs: the critical difference says the same."
