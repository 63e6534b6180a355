"""`cluster=`: the tests of the pairs both ways, with tasks and with clusters of tasks as units."""

from itertools import chain

import numpy as np
import pandas as pd

from analysis.grids.formats import equals, fraction, percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import corrected
from analysis.questions.question import Answer, Material
from analysis.questions.seeds import ends
from analysis.questions.tables import (
    NO_CLAIM,
    OF_BEST,
    PAIR,
    Row,
    after_correction,
    claims,
    filled,
    p_cell,
    pair_name,
    tasks_text,
)
from analysis.scores.task_types import clusters_of
from analysis.settings import Settings
from analysis.statistics.clusters import cluster_interval, cluster_pairs, membership
from analysis.statistics.correction import passes
from analysis.statistics.intervals import direction, student_interval
from analysis.statistics.sign_flip import EXACT_UP_TO

PLACE = 90
METHODS = (
    "Tasks that share a source (cluster={cluster}) were also taken as one unit, whose differences flip their signs"
    " together [@winkler2015]; intervals over such units have the error and degrees of freedom of Bell and McCaffrey"
    " [@bell2002]."
)


MOST_UNASKED = 1000  # pairs; beyond them a verdict is given without the test over sources, unless cluster= asks
OF_TASKS = ("difference", "hodges_lehmann", "ahead", "p", "p_adjusted")
OF_SEEDS = ("n_seeds", "mean_seeds", "p_seeds")
# column of a difference -> ending of the columns of its test (p, p_adjusted, reachable)
SIZED = {"hodges_lehmann_tasks": "_tasks", "hodges_lehmann_clusters": "", "difference_tasks": "_flip"}


def answer(material: Material) -> Answer | None:
    """Return the tests with clusters as units; without `cluster=`, a note where tasks share a source, or None."""
    cluster = material.settings.cluster
    labels = clusters_of(cluster, material.tasks)
    sizes = {kind: len({labels[task] for task in tasks}) for kind, tasks in material.blocks.items()}
    shared = {kind: n for kind, n in sizes.items() if n < len(material.blocks[kind])}
    if not cluster:
        return _unasked(material, shared, labels) if shared else None
    if not shared:
        return Answer("clusters", notes=[f"cluster={cluster}: no two of the tasks share one, so tasks are the units."])
    frame = _tests(material, shared, labels)
    last = frame[frame["type"] == list(shared)[-1]]
    return Answer(
        "clusters",
        methods=[METHODS.format(cluster=cluster)],
        grids=[_grid(last.iloc[material.leading(last)], material.settings.of_other_tests)],
        frames={"clusters": frame},
        notes=_notes(material, sizes, labels),
        about=_about(last, material.settings.of_other_tests, "clusters"),
    )


def _unasked(material: Material, shared: dict[str, int], labels: dict[str, str]) -> Answer:
    """A note that tasks share a source; and for the verdict, what the test with sources as units says of each pair."""
    last, about = material.last, {}
    if last in shared and len(material.pairs) <= MOST_UNASKED * len(material.blocks):
        frame = _tests(material, {last: shared[last]}, labels, intervals=False)
        about = _about(frame, material.settings.of_other_tests, "sources of the tasks")
    return Answer("clusters", notes=[_sharing(material, shared, labels)], about=about)


def _tests(material: Material, shared: dict[str, int], labels: dict[str, str], intervals: bool = True) -> pd.DataFrame:
    """One row a (block with clusters, pair): columns of the pairs table, then those of the clusters, all corrected.

    family=table is here the blocks with clusters.
    """
    settings, parts = material.settings.of_other_tests, []
    for kind in shared:
        tasks, rows = material.blocks[kind], material.pairs_on(kind)
        differences = np.ascontiguousarray(material.differences(kind))  # the order in which its means are summed
        members = membership([labels[task] for task in tasks])
        tested = cluster_pairs(differences, members, settings.zeros, settings.decimals, settings.alpha)
        ranks, typical, flips = tested.ranks, tested.typical, tested.flips
        columns = {name: rows[name].to_numpy() for name in ("type", "first", "second")}
        columns |= {"n_tasks": len(tasks), "n_clusters": members.shape[0]}
        columns |= {f"{name}_tasks": rows[name].to_numpy() for name in OF_TASKS}
        columns |= {name: rows[name].to_numpy() for name in OF_SEEDS}
        columns |= {"difference_clusters": tested.difference, "hodges_lehmann_clusters": typical.estimate}
        columns |= {"hl_low_clusters": typical.low, "hl_high_clusters": typical.high}
        columns |= {"ahead": direction(typical.estimate, ranks, settings.alpha).astype(int)}
        columns |= {"w_plus": ranks.w_plus, "w_minus": ranks.w_minus, "p": ranks.p, "p_min": ranks.p_min}
        columns |= {"p_flip": flips.p, "p_min_flip": flips.p_min, "flips": flips.flips, "flips_exact": flips.exact}
        if intervals:
            level = 1 - settings.alpha
            columns["low_tasks"], columns["high_tasks"] = student_interval(differences, level)
            columns["low_clusters"], columns["high_clusters"] = cluster_interval(differences, members, level).T
        parts.append(pd.DataFrame(columns))
    tests = pd.concat(parts, ignore_index=True)
    flipped = corrected(tests[["type"]].assign(p=tests["p_flip"], p_min=tests["p_min_flip"]), settings)
    names = ("p_adjusted", "p_min_adjusted", "reachable")
    table = corrected(tests, settings).assign(**{f"{name}_flip": flipped[name] for name in names})
    return table.assign(told=table["told"] & (table["ahead"] == np.sign(table["mean_seeds"])))


def _grid(rows: pd.DataFrame, settings: Settings) -> Grid:
    """One row per pair; each p stands behind the difference that it belongs to."""

    def cells(row: Row) -> list[Cell]:
        told = passes(row["p_seeds_adjusted"], settings.alpha)
        stars = {name: bool(told and row[name] * row["mean_seeds"] > 0) for name in SIZED}
        p = {name: p_cell(row, settings, end, stars[name]) for name, end in SIZED.items()}
        sized = [(Cell(settings.numbers.signed(row[name])), p[name]) for name in SIZED]
        intervals = [Cell(ends(row, name, settings.numbers)) for name in ("tasks", "clusters")]
        return [Cell(pair_name(row)), *chain(*sized), *intervals]

    n, units, level = rows["n_tasks"].iloc[0], rows["n_clusters"].iloc[0], percent(settings.alpha)
    header = [PAIR, "HL", f"p (n = {n} tasks)", "HL", f"p (n = {units} clusters)", "Mean", "p flips"]
    header += [f"{level} tasks", f"{level} clusters"]
    grid = Grid("clusters", _caption(rows, settings), header, title="Tasks and clusters")
    return filled(grid, rows, cells, settings.rows_shown, f"{OF_BEST}; clusters.csv has all.")


def _caption(rows: pd.DataFrame, settings: Settings) -> str:
    n, units, after = rows["n_tasks"].iloc[0], rows["n_clusters"].iloc[0], after_correction(settings)
    alpha, star = fraction(settings.alpha), f"No star: {NO_CLAIM}"
    if claims(rows):
        star = f"* = at most {alpha}{' after the correction' if after else ''}, here and over tasks and seeds"
    what = tasks_text(rows["type"].iloc[0], n, every="all ")
    how = "all" if rows["flips_exact"].iloc[0] else f"{rows['flips'].iloc[0]:,} random"
    corrected_by = f", in brackets{after}" if after else ""
    return (
        f"The pairs over {what}, which come from {units} clusters (cluster={settings.cluster}). Each p belongs to the"
        " difference before it: Hodges-Lehmann (HL) with the two-sided exact Wilcoxon signed-rank test, with tasks as"
        " units and with clusters as units (mean difference of each); mean over tasks with the sign-flip permutation of"
        f" whole clusters ({how} patterns; exact up to {EXACT_UP_TO} clusters){corrected_by};"
        f" {percent(settings.alpha)} intervals of the mean over tasks: Student's t with tasks as units, as for the"
        " pairs, and with clusters as units (error and degrees of freedom of Bell and McCaffrey)."
        f" {star}; n.a. = so few clusters that {alpha} cannot be reached."
    )


def _about(rows: pd.DataFrame, settings: Settings, units: str) -> dict[tuple[str, str], str]:
    """A sentence a pair: the test with clusters as units, since tasks that share texts are no independent witnesses."""
    after, sentences = after_correction(settings), {}
    for row in rows.to_dict("records"):
        head, floor = f"With the {row['n_clusters']} {units} as units:", fraction(row["p_min_adjusted"])
        if row["reachable"] == "yes":
            result = f"p {equals(row['p_adjusted'])}{after}; the smallest possible is {floor}."
        else:
            result = f"no difference can be shown; the smallest p possible{after} is {floor}."
        if row["ahead"] * row["ahead_tasks"] < 0:
            ahead = row["second"] if row["ahead"] > 0 else row["first"]
            size = settings.numbers.score(abs(row["hodges_lehmann_clusters"]))
            result = f"{ahead} is ahead (Hodges-Lehmann {size}); {result}"
        sentences[row["first"], row["second"]] = f"{head} {result}"
    return sentences


def _sharing(material: Material, shared: dict[str, int], labels: dict[str, str]) -> str:
    """The 40 tasks come from 8 sources; cluster=source shows the result with sources as units."""
    kind = list(shared)[-1]
    what = tasks_text(kind, len(material.blocks[kind]), "The ", "The ")
    groups: dict[str, list[str]] = {}
    for task in material.blocks[kind]:
        groups.setdefault(labels[task], []).append(task)
    sources = "source" if shared[kind] == 1 else "sources"
    example = next(tasks for tasks in groups.values() if len(tasks) > 1)
    return (
        f"{what} come from {shared[kind]} {sources} (such as {example[0]} and {example[1]}), so their differences may"
        " not be independent; cluster=source shows the result with sources as units."
    )


def _notes(material: Material, sizes: dict[str, int], labels: dict[str, str]) -> list[str]:
    parts = [f"{kind} {len(material.blocks[kind])} tasks, {n}" for kind, n in sizes.items()]
    notes = [f"Clusters (cluster={material.settings.cluster}): {'; '.join(parts)}."]
    alone = [task for task, label in labels.items() if label == f"{task} (alone)"]
    if alone:
        notes.append(f"{len(alone)} tasks that {material.settings.cluster} does not name are clusters of their own.")
    return notes
