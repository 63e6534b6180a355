"""Sensitivity: the pairs with packages (clusters of tasks that share texts) as units, and without any one task."""

import pandas as pd

from analysis.formats import count_of, p_is
from analysis.names import listed
from analysis.render import Section
from analysis.scores.tasks import source_of
from analysis.tables.compared_pairs import ALL, BOTH, compare_pairs, without_one_task
from analysis.tables.material import Material

NAMED, MOST_LEFT_OUT = 6, 150  # pairs; tasks: with more, all pairs tested again without each would take minutes


def section(material: Material) -> Section | None:
    """Return one sentence on clusters as units, and one on each significant pair without any single task."""
    notes = [*_clusters(material), *_left_out(material)]
    return Section("sensitivity", "Sensitivity", notes=notes) if notes else None


def _clusters(material: Material) -> list[str]:
    tasks, labels = material.tasks, {task: source_of(task) for task in material.tasks}
    count = len(set(labels.values()))
    if not 1 < count < len(tasks):
        return []
    table = cluster_tests(material, labels)
    if table["p"].isna().all():  # too few seeds: nothing was tested
        return []
    return [
        f"With the {count} sources of the {len(tasks)} tasks as units, significant over sources and seeds"
        f" (Holm, {count_of(len(table), 'pair')}): {_named(table, material)}."
    ]


def cluster_tests(material: Material, labels: dict[str, str]) -> pd.DataFrame:
    """Return `compare_pairs` of the clusters' mean scores. labels: task -> cluster."""
    frame = material.frame.assign(task=material.frame["task"].map(labels))
    frame = frame.groupby(["design", "seed", "task"], sort=False)["score"].mean().reset_index()
    matrix = material.matrix.groupby(labels, sort=False).mean()
    return compare_pairs(matrix, {ALL: list(matrix.index)}, material.settings, material.control, frame)


def _named(table: pd.DataFrame, material: Material) -> str:
    found = table[table["significant"] == BOTH]
    texts = material.pair_texts(found)
    return listed([f"{t} ({p_is(p)})" for t, p in zip(texts, found["p_holm"], strict=True)], NAMED) or "none"


def _left_out(material: Material) -> list[str]:
    """Say of each significant pair without which task its p is largest."""
    tasks, pairs = material.blocks[material.last], material.main_pairs
    found = pairs[pairs["significant"] == BOTH]
    if found.empty or len(tasks) < 3 or len(tasks) > MOST_LEFT_OUT or len(pairs) > material.settings.rows_shown:
        return []
    without = without_one_task(material.matrix.loc[tasks], material.frame, material.control)
    worst = found.merge(without, on=["first", "second"], suffixes=("", "_without"))
    rows = zip(material.pair_texts(worst), worst["p_holm_without"], worst["task"], strict=True)
    texts = [f"{name} without {task}, {p_is(p)}" for name, p, task in rows]
    return [f"Left out one task at a time, the largest p (Holm) of what is significant: {listed(texts, NAMED)}."]
