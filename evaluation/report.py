"""What evaluate.py prints at its end: scores by type of task, and notes on the tasks."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from evaluation.scoring import Outcome
from evaluation.tasks.task_data import TYPES


def score_table(outcomes: Sequence[Outcome]) -> str:
    """Return the mean main score by type, each task counting once, and the mean over types."""
    means = [type_means(outcome) for outcome in outcomes]
    seen = {kind for mean in means for kind in mean}
    kinds = [k for k in TYPES if k in seen] + sorted(seen - set(TYPES))
    counts = Counter(kind for kind, _ in outcomes[0].scores.values())
    rows = [["mean main score", *(f"{kind} ({counts[kind]})" for kind in kinds), "mean of types"]]
    for o, mean in zip(outcomes, means, strict=True):
        rows.append([o.title, *(f"{mean[k]:.4f}" for k in kinds), f"{math.fsum(mean.values()) / len(mean):.4f}"])
    return aligned(rows)


def task_notes(tasks: Sequence[Any]) -> list[str]:
    """Say which split a score is of where that is not test, and over what it is a mean."""
    others = []
    for task in tasks:
        name, splits, subsets = task.metadata.name, " and ".join(task.eval_splits), len(task.hf_subsets)
        if splits != "test" or subsets > 1:
            others.append(f"{name} ({splits}{f', {subsets} subsets' if subsets > 1 else ''})")
    return [f"Not of the split test and one subset alone: {', '.join(others)}; of several, the mean."] * bool(others)


def type_means(outcome: Outcome) -> dict[str, float]:
    """Map each task type to the mean of its tasks' main scores."""
    by_type: dict[str, list[float]] = defaultdict(list)
    for kind, value in outcome.scores.values():
        by_type[kind].append(value)
    return {kind: math.fsum(values) / len(values) for kind, values in by_type.items()}


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells))
    return "\n".join(lines)
