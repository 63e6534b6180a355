"""Means by task type: one row a design."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MEAN_TASKS = "Mean (tasks)"
MEAN_TYPES = "Mean (types)"


def seed_means(frame: "pd.DataFrame", designs: list[str], tasks: list[str]) -> "pd.DataFrame":
    """Return tasks x designs: the mean over seeds, the score of a design on a task."""
    kept = frame[frame["design"].isin(designs) & frame["task"].isin(tasks)]
    return kept.groupby(["task", "design"])["score"].mean().unstack("design").loc[tasks, designs]


def type_means(matrix: "pd.DataFrame", types: dict[str, list[str]]) -> "pd.DataFrame":
    """Return designs x (each type, mean over tasks, mean over types); the means only where there are two types."""
    import pandas as pd

    table = pd.DataFrame({kind: matrix.loc[tasks].mean() for kind, tasks in types.items()})
    if len(types) > 1:
        over_types = table.mean(axis=1)
        table[MEAN_TASKS] = matrix.loc[[task for tasks in types.values() for task in tasks]].mean()
        table[MEAN_TYPES] = over_types
    return table.loc[matrix.columns]
