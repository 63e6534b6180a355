"""What evaluate.py prints at its end: scores by type of task."""

from collections.abc import Sequence

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
