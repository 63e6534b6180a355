"""What a command prints at its end: one table of scores by task type, one of speed."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from evaluation.results import left_out
from evaluation.scoring import Outcome
from evaluation.task_data import TYPES


def report(outcomes: Sequence[Outcome]) -> str:
    """Return both tables. A score is the mean main score over the tasks of a type, each task counting once."""
    return "\n\n".join([score_table(outcomes), speed_table(outcomes)])


def score_table(outcomes: Sequence[Outcome]) -> str:
    """Mean main score by type, and the mean over types."""
    means = [type_means(outcome) for outcome in outcomes]
    seen = {kind for mean in means for kind in mean}
    kinds = [k for k in TYPES if k in seen] + sorted(seen - set(TYPES))
    counts: dict[str, int] = defaultdict(int)
    for kind, _ in outcomes[0].scores.values():
        counts[kind] += 1
    head = ["mean main score", *(f"{kind} ({counts[kind]})" for kind in kinds), "mean of types"]
    rows = [
        [o.title, *(f"{mean[k]:.4f}" for k in kinds), f"{math.fsum(mean.values()) / len(mean):.4f}"]
        for o, mean in zip(outcomes, means, strict=True)
    ]
    return aligned([head, *rows])


def speed_table(outcomes: Sequence[Outcome]) -> str:
    """Texts that were encoded and those found in the cache; seconds of encoding, of the cache, of mteb's own work."""
    head = ["speed", "new scores", "texts", "cached", "texts/s", "tokens/s", "encoding s", "cache s", "mteb s"]
    rows = []
    for o in outcomes:
        rate = [f"{count / o.encoding:,.0f}" if o.encoding else "-" for count in (o.texts, o.tokens)]
        mteb = max(0.0, o.seconds - o.encoding - o.caching)
        spent = [f"{seconds:.1f}" for seconds in (o.encoding, o.caching, mteb)]
        rows.append([o.title, f"{o.computed} of {len(o.scores)}", f"{o.texts:,}", f"{o.cached:,}", *rate, *spent])
    return aligned([head, *rows])


def task_notes(tasks: Sequence[Any]) -> list[str]:
    """Say what the files of a task lack, which split a score is of where that is not test, over what it is a mean."""
    notes = []
    for task in tasks:
        counts = ", ".join(f"{count} {what}" for what, count in left_out(task).items())
        notes += [f"{task.metadata.name} left out what is missing or empty in its files: {counts}."] if counts else []
    said = []
    for task in tasks:
        splits, subsets = " and ".join(task.eval_splits), len(task.hf_subsets)
        if splits != "test" or subsets > 1:
            said.append(f"{task.metadata.name} ({splits}{f', {subsets} subsets' if subsets > 1 else ''})")
    return [
        *notes,
        *[f"Not of the split test and one subset alone: {', '.join(said)}; of several, the mean."] * bool(said),
    ]


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
