"""Sensitivity: the pairs once more with clusters of tasks (those that share their texts) as units instead of tasks."""

import pandas as pd

from analysis.names import listed
from analysis.questions.compared_pairs import ALL, compare_pairs, is_significant
from analysis.questions.question import Answer, Material
from analysis.questions.tables import pair_name
from analysis.scores.tasks import clusters_of

PLACE = 90


def answer(material: Material) -> Answer | None:
    """Return the tests with clusters as units and one sentence; None where no two tasks share one."""
    tasks, cluster = material.tasks, material.settings.cluster
    labels = clusters_of(cluster, tasks)
    count = len({labels[task] for task in tasks})
    if not 1 < count < len(tasks):
        alone = f"cluster={cluster}: no two of the tasks share one, so tasks are the units."
        return Answer("clusters", notes=[alone]) if cluster else None
    table = cluster_tests(material, labels)
    found = table[is_significant(table)]
    names = listed(map(pair_name, found.to_dict("records")), 6) if len(found) else "none"
    note = (
        f"With the {count} sources of the {len(tasks)} tasks as units {len(found)} of {len(table)} differences are"
        f" significant over sources and seeds: {names}."
    )
    return Answer("clusters", frames={"clusters": table}, notes=[note])


def cluster_tests(material: Material, labels: dict[str, str]) -> pd.DataFrame:
    """Return `compare_pairs` of the clusters' mean scores. labels: task -> cluster."""
    frame = material.frame.assign(task=material.frame["task"].map(labels))
    frame = frame.groupby(["design", "seed", "task"], sort=False)["score"].mean().reset_index()
    matrix = material.matrix.groupby(labels, sort=False).mean()
    return compare_pairs(matrix, {ALL: list(matrix.index)}, material.settings, material.control, frame)
