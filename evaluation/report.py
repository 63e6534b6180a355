"""What evaluate.py prints at its end: scores by type of task, and notes on the tasks."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from evaluation.scoring import Outcome
from evaluation.tasks.task_data import TYPES


def score_table(outcomes: Sequence[Outcome]) -> str:
    """Return the mean main score by type, each task counting once, and the mean over types."""
    rows = [(number, kind, value) for number, o in enumerate(outcomes) for kind, value in o.scores.values()]
    scores = pd.DataFrame(rows, columns=["outcome", "type", "score"])
    means = scores.pivot_table("score", "outcome", "type")
    kinds = [*(kind for kind in TYPES if kind in means), *sorted(set(means) - set(TYPES))]
    counts = scores["type"].value_counts() // len(outcomes)
    table = means[kinds].assign(**{"mean of types": means.mean(axis=1)})
    table = table.set_axis([o.title for o in outcomes]).rename(columns={k: f"{k} ({counts[k]})" for k in kinds})
    return table.rename_axis(columns="mean main score").to_string(float_format="%.4f")


def task_notes(tasks: Sequence[Any]) -> list[str]:
    """Say which split a score is of where that is not test, and over what it is a mean."""
    others = []
    for task in tasks:
        name, splits, subsets = task.metadata.name, " and ".join(task.eval_splits), len(task.hf_subsets)
        if splits != "test" or subsets > 1:
            others.append(f"{name} ({splits}{f', {subsets} subsets' if subsets > 1 else ''})")
    return [f"Not of the split test and one subset alone: {', '.join(others)}; of several, the mean."] * bool(others)
