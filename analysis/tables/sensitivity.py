"""Sensitivity: the pairs with packages (clusters of tasks that share texts) as units, and without any one task."""

from dataclasses import replace

import pandas as pd

from analysis.formats import count_of, p_is
from analysis.names import listed
from analysis.render import Section
from analysis.scores.tasks import source_of
from analysis.statistics.seeds import FEWEST_TASKS
from analysis.tables.compared_pairs import BOTH, compare_pairs, without_one_task
from analysis.tables.comparison import Comparison

NAMED = 6  # pairs
MOST_LEFT_OUT = 6750  # pairs x tasks: with more, all pairs tested again without each task would take minutes


def section(compared: Comparison) -> Section | None:
    """Return one sentence on clusters as units, and one on each significant pair without any single task."""
    notes = [*_clusters(compared), *_left_out(compared)]
    return Section("sensitivity", "Sensitivity", notes=notes) if notes else None


def _clusters(compared: Comparison) -> list[str]:
    coarse = by_source(compared)
    if coarse is None or coarse.pairs["p"].isna().all():  # too few seeds or sources: nothing was tested
        return []
    return [
        f"With the {len(coarse.matrix)} sources of the {len(compared.matrix)} tasks as units, significant over sources"
        f" and seeds (Holm, {count_of(len(coarse.pairs), 'pair')}): {_named(coarse.pairs, compared)}."
    ]


def by_source(compared: Comparison) -> Comparison | None:
    """Return the comparison with the mean scores of tasks that share a source, None where that joins none or all."""
    labels = {task: source_of(task) for task in compared.tasks}
    if not 1 < len(set(labels.values())) < len(labels):
        return None
    frame = compared.frame.assign(task=compared.frame["task"].map(labels))
    frame = frame.groupby(["design", "seed", "task"], sort=False)["score"].mean().reset_index()
    matrix = compared.matrix.groupby(labels, sort=False).mean()
    blocks = {compared.last: list(matrix.index)}
    pairs = compare_pairs(matrix, blocks, compared.settings, compared.control, frame)
    return replace(compared, types=blocks, blocks=blocks, frame=frame, matrix=matrix, pairs=pairs)


def _named(table: pd.DataFrame, compared: Comparison) -> str:
    found = table[table["significant"] == BOTH]
    texts = compared.pair_texts(found)
    return listed([f"{t} ({p_is(p)})" for t, p in zip(texts, found["p_holm"], strict=True)], NAMED) or "none"


def _left_out(compared: Comparison) -> list[str]:
    """Say of each significant pair without which task its p is largest."""
    tasks, pairs = compared.blocks[compared.last], compared.main_pairs
    found = pairs[pairs["significant"] == BOTH]
    if found.empty or len(tasks) <= FEWEST_TASKS:
        return []
    if len(tasks) * len(pairs) > MOST_LEFT_OUT:
        return [f"Not tried without one task at a time: {len(pairs):,} pairs on {len(tasks)} tasks would take minutes."]
    without = without_one_task(compared.matrix.loc[tasks], compared.frame, compared.control)
    worst = found.merge(without, on=["first", "second"], suffixes=("", "_without"))
    rows = zip(compared.pair_texts(worst), worst["p_holm_without"], worst["task"], strict=True)
    texts = [f"{name} without {task}, {p_is(p)}" for name, p, task in rows]
    return [f"Left out one task at a time, the largest p (Holm) of what is significant: {listed(texts, NAMED)}."]
