"""`cluster=`: the tests of the pairs both ways, with tasks and with clusters of tasks as units."""

import numpy as np
import pandas as pd

from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import corrected
from analysis.questions.pair_texts import correction_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, filled, p_cell, pair_name, tasks_text
from analysis.scores.tasks import clusters_of
from analysis.settings import Settings
from analysis.statistics.clusters import cluster_interval, cluster_means, membership
from analysis.statistics.intervals import direction, student_interval, typical_difference
from analysis.statistics.wilcoxon import signed_rank

PLACE = 90
OF_TASKS = ("difference", "hodges_lehmann", "ahead", "p", "p_adjusted")
OF_SEEDS = ("n_seeds", "mean_seeds", "p_seeds")


def answer(material: Material) -> Answer | None:
    """Return the tests with clusters as units; without `cluster=`, a note where tasks share a source, or None."""
    cluster = material.settings.cluster
    labels = clusters_of(cluster, material.tasks)
    sizes = {kind: len({labels[task] for task in tasks}) for kind, tasks in material.blocks.items()}
    shared = {kind: n for kind, n in sizes.items() if n < len(material.blocks[kind])}
    if not shared:
        alone = f"cluster={cluster}: no two of the tasks share one, so tasks are the units."
        return Answer("clusters", notes=[alone]) if cluster else None
    if not cluster:
        return Answer("clusters", notes=[_sharing(material, shared)])
    frame = cluster_tests(material, list(shared), labels)
    last = frame[frame["type"] == list(shared)[-1]]
    grid = _grid(last.iloc[material.leading(last)], material.settings)
    return Answer("clusters", grids=[grid], frames={"clusters": frame})


def cluster_tests(material: Material, kinds: list[str], labels: dict[str, str]) -> pd.DataFrame:
    """Return one row a (block with clusters, pair): columns of the pairs, then those of the clusters, all corrected.

    labels: task -> cluster. family=table is here the blocks with clusters.
    """
    settings, parts = material.settings, []
    for kind in kinds:
        tasks, rows, level = material.blocks[kind], material.pairs_on(kind), 1 - settings.alpha
        differences = np.ascontiguousarray(material.differences(kind))  # the order in which its means are summed
        members = membership([labels[task] for task in tasks])
        means = cluster_means(differences, members, settings.decimals)
        ranks = signed_rank(means, settings.zeros, settings.decimals)
        typical = typical_difference(means, ranks, settings.alpha, settings.zeros, settings.decimals)
        columns = {name: rows[name].to_numpy() for name in ("type", "first", "second")}
        columns |= {"n_tasks": len(tasks), "n_clusters": members.shape[0]}
        columns |= {f"{name}_tasks": rows[name].to_numpy() for name in OF_TASKS}
        columns |= {name: rows[name].to_numpy() for name in OF_SEEDS}
        columns |= {"difference_clusters": means.mean(axis=1), "hodges_lehmann_clusters": typical.estimate}
        columns |= {"hl_low_clusters": typical.low, "hl_high_clusters": typical.high}
        columns |= {"ahead": direction(typical.estimate, ranks, settings.alpha).astype(int)}
        columns |= {"w_plus": ranks.w_plus, "w_minus": ranks.w_minus, "p": ranks.p, "p_min": ranks.p_min}
        columns["low_tasks"], columns["high_tasks"] = student_interval(differences, level)
        columns["low_clusters"], columns["high_clusters"] = cluster_interval(differences, members, level).T
        parts.append(pd.DataFrame(columns))
    table = corrected(pd.concat(parts, ignore_index=True), settings)
    return table.assign(told=table["told"] & (table["ahead"] == np.sign(table["mean_seeds"])))


def _grid(rows: pd.DataFrame, settings: Settings) -> Grid:
    """One row per pair; each p stands behind the difference that it belongs to."""
    numbers = settings.numbers

    def cells(row: Row) -> list[Cell]:
        intervals = [numbers.interval(row[f"low_{name}"], row[f"high_{name}"]) for name in ("tasks", "clusters")]
        tests = [Cell(numbers.signed(row["hodges_lehmann_tasks"])), p_cell(row, settings, "_tasks")]
        tests += [Cell(numbers.signed(row["hodges_lehmann_clusters"])), p_cell(row, settings)]
        return [Cell(pair_name(row)), *tests, *map(Cell, intervals)]

    n, units, level = rows["n_tasks"].iloc[0], rows["n_clusters"].iloc[0], percent(settings.alpha)
    caption = (
        f"The pairs over {tasks_text(rows['type'].iloc[0], n, every='all ')}, which come from {units} clusters"
        f" (cluster={settings.cluster}): Hodges-Lehmann difference (HL) and p of the signed-rank test with tasks and"
        f" with the clusters' means as units; {correction_text(rows, settings)}. Intervals of the mean over tasks:"
        " Student's t with tasks as units, and with clusters (error and degrees of freedom of Bell and McCaffrey)."
    )
    header = [PAIR, "HL", f"p (n = {n} tasks)", "HL", f"p (n = {units} clusters)"]
    header += [f"{level} tasks", f"{level} clusters"]
    grid = Grid("clusters", caption, header, title="Tasks and clusters")
    return filled(grid, rows, cells, settings.rows_shown, f"{OF_BEST}; clusters.csv has all.")


def _sharing(material: Material, shared: dict[str, int]) -> str:
    kind = list(shared)[-1]
    what = tasks_text(kind, len(material.blocks[kind]), "The ", "The ")
    return (
        f"{what} come from {shared[kind]} sources, so their differences may not be independent; cluster=source shows"
        " the result with sources as units."
    )
