"""`cluster=`: the tests of the pairs both ways, with tasks and with clusters of tasks as units."""

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from analysis.grids.formats import equals, fraction, percent, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import corrected
from analysis.questions.question import Answer, Material
from analysis.questions.seeds import ends
from analysis.scores.task_types import clusters_of
from analysis.settings import Settings
from analysis.statistics.clusters import cluster_interval, cluster_pairs, membership
from analysis.statistics.correction import correction_name, passes
from analysis.statistics.intervals import direction, student_interval
from analysis.statistics.sign_flip import EXACT_UP_TO

PLACE = 170
METHODS = (
    "Tasks that share a source (cluster={cluster}) were also taken as one unit, whose differences flip their signs"
    " together [@winkler2015]; intervals over such units have the error and degrees of freedom of Bell and McCaffrey"
    " [@bell2002]."
)


def cluster_grid(frame: pd.DataFrame, shared: dict[str, int], material: Material) -> Grid:
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


def _caption(rows: pd.DataFrame, settings: Settings) -> str:
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


MOST_UNASKED = 1000  # pairs; beyond them a verdict is given without the test over sources, unless cluster= asks
SHARED = ("type", "first", "second")
OF_TASKS = ("difference", "hodges_lehmann", "ahead", "p", "p_adjusted")


def answer(material: Material) -> Answer | None:
    """Return the tests with clusters as units; without `cluster=`, a note where tasks share a source, or None."""
    cluster = material.settings.cluster
    tasks = [task for own in material.types.values() for task in own]
    labels = clusters_of(cluster, tasks)
    sizes = {kind: len({labels[task] for task in own}) for kind, own in material.blocks.items()}
    shared = {kind: n for kind, n in sizes.items() if n < len(material.blocks[kind])}
    if not cluster:
        return _unasked(material, shared, labels) if shared else None
    if not shared:
        return Answer("clusters", notes=[f"cluster={cluster}: no two of the tasks share one, so tasks are the units."])
    frame = _tests(material, shared, labels)
    grid = cluster_grid(frame, shared, material)
    notes = _notes(material, sizes, labels)
    about = _about(frame[frame["type"] == list(shared)[-1]], material.settings, "clusters")
    return Answer(
        "clusters",
        methods=[METHODS.format(**vars(material.settings))],
        grids=[grid],
        frames={"clusters": frame},
        notes=notes,
        about=about,
    )


def _unasked(material: Material, shared: dict[str, int], labels: dict[str, str]) -> Answer:
    """A note that tasks share a source; and for the verdict, what the test with sources as units says of each pair."""
    last, about = list(material.blocks)[-1], {}
    if last in shared and len(material.pairs) <= MOST_UNASKED * len(material.blocks):
        frame = _tests(material, {last: shared[last]}, labels, intervals=False)
        about = _about(frame, material.settings, "sources of the tasks")
    return Answer("clusters", notes=[_sharing(material, shared, labels)], about=about)


def _about(rows: pd.DataFrame, settings: Settings, units: str) -> dict[tuple[str, str], str]:
    """A sentence a pair: the test with clusters as units, since tasks that share texts are no independent witnesses."""
    after = "" if settings.correction == "none" else f" after {correction_name(settings.correction)}"
    found = {}
    for row in rows.to_dict("records"):
        head, floor = f"With the {row['n_clusters']} {units} as units", fraction(row["p_min_adjusted"])
        if row["reachable"] == "yes":
            word = "is" if row["significant"] else "is not"
            said = f"it {word} significant: p {equals(row['p_adjusted'])}{after}; the smallest possible is {floor}."
        else:
            said = f"it cannot be shown: the smallest p possible{after} is {floor}."
        if row["ahead"] * row["ahead_tasks"] < 0:
            ahead = row["second"] if row["ahead"] > 0 else row["first"]
            said = f"{ahead} is ahead (Hodges-Lehmann {score(abs(row['hodges_lehmann_clusters']))}); {said}"
        found[row["first"], row["second"]] = f"{head} {said}"
    return found


def _sharing(material: Material, shared: dict[str, int], labels: dict[str, str]) -> str:
    """The 40 tasks come from 8 sources; cluster=source shows the result with sources as units."""
    kind = list(shared)[-1]
    n = len(material.blocks[kind])
    what = f"The {n} tasks" if kind == "All" else f"The {n} {kind} tasks"
    groups: dict[str, list[str]] = {}
    for task in material.blocks[kind]:
        groups.setdefault(labels[task], []).append(task)
    sources = "source" if shared[kind] == 1 else "sources"
    example = next(own for own in groups.values() if len(own) > 1)
    return (
        f"{what} come from {shared[kind]} {sources} (such as {example[0]} and {example[1]}), so their differences may"
        " not be independent; cluster=source shows the result with sources as units."
    )


def _tests(material: Material, shared: dict[str, int], labels: dict[str, str], intervals: bool = True) -> pd.DataFrame:
    """One row a (block with clusters, pair): columns of the pairs table, then those of the clusters, all corrected."""
    settings = material.settings
    parts = []
    for kind in shared:
        tasks = material.blocks[kind]
        rows = material.pairs[material.pairs["type"] == kind]
        scores = material.matrix.loc[tasks].to_numpy(dtype=np.float64)
        first, second = (material.matrix.columns.get_indexer(rows[name]) for name in ("first", "second"))
        members = membership([labels[task] for task in tasks])
        differences = (scores[:, second] - scores[:, first]).T
        found = cluster_pairs(differences, members, settings.zeros, settings.decimals, settings.alpha)
        columns = {name: rows[name].to_numpy() for name in SHARED}
        columns |= {"n_tasks": len(tasks), "n_clusters": members.shape[0]}
        columns |= {f"{name}_tasks": rows[name].to_numpy() for name in OF_TASKS}
        columns |= {"difference_clusters": found.difference, "hodges_lehmann_clusters": found.typical.estimate}
        columns |= {"hl_low_clusters": found.typical.low, "hl_high_clusters": found.typical.high}
        columns |= {"ahead": direction(found.typical.estimate, found.ranks, settings.alpha).astype(int)}
        columns |= {"w_plus": found.ranks.w_plus}
        columns |= {"w_minus": found.ranks.w_minus, "p": found.ranks.p, "p_min": found.ranks.p_min}
        columns |= {"p_flip": found.flips.p, "p_min_flip": found.flips.p_min}
        columns |= {"flips": found.flips.flips, "flips_exact": found.flips.exact}
        both = _intervals(differences, members, 1 - settings.alpha) if intervals else {}
        parts.append(pd.DataFrame(columns | both))
    return _corrected(pd.concat(parts, ignore_index=True), settings)


def _intervals(differences: np.ndarray, members: np.ndarray | csr_array, level: float) -> dict[str, np.ndarray]:
    columns = {}
    columns["low_tasks"], columns["high_tasks"] = student_interval(differences, level)
    columns["low_clusters"], columns["high_clusters"] = cluster_interval(differences, members, level).T
    return columns


def _corrected(tests: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Correct the p-values of both tests as those of the pairs; family=table is here the blocks with clusters."""
    flips = tests[["type", "p_flip", "p_min_flip"]].set_axis(["type", "p", "p_min"], axis=1)
    tests = corrected(tests, settings)
    found = corrected(flips, settings)
    for name in ("p_adjusted", "p_min_adjusted", "reachable"):
        tests[f"{name}_flip"] = found[name]
    return tests


def _notes(material: Material, sizes: dict[str, int], labels: dict[str, str]) -> list[str]:
    parts = [f"{kind} {len(material.blocks[kind])} tasks, {n}" for kind, n in sizes.items()]
    notes = [f"Clusters (cluster={material.settings.cluster}): {'; '.join(parts)}."]
    alone = [task for task, label in labels.items() if label == f"{task} (alone)"]
    if alone:
        notes.append(f"{len(alone)} tasks that {material.settings.cluster} does not name are clusters of their own.")
    return notes
