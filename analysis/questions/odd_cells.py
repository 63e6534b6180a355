"""Single scores far off their task and their model, by name: another scale, a failed run, training on the task."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from analysis.grids.formats import Numbers
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row
from analysis.statistics.odd_cells import FAR, LEAST, odd_cells

PLACE = 95
SHOWN = 5  # scores that the note spells out


def odd_scores(read: pd.DataFrame, compared: Collection[str], tasks: list[str]) -> pd.DataFrame:
    """Return the scores of the designs `compared` on `tasks` that are far off, the farthest first.

    read: the long table of all designs that are to be looked at together, since a task's median is the surer the more
    of them there are; each seed is a column of its own. Columns: design, seed, task, type, score, task_median, expected
    (of task and model), from_task, from_profile (robust standard deviations).
    """
    wide = read.pivot_table(index="task", columns=["design", "seed"], values="score", sort=False)
    far = odd_cells(wide.to_numpy(dtype=np.float64))
    kinds = dict(zip(read["task"].tolist(), read["type"].tolist(), strict=True))
    rows = []
    for row, column in np.argwhere(far.odd).tolist():
        task, (design, seed) = wide.index[row], wide.columns[column]
        if design in compared and task in tasks:
            values = [wide.iloc[row, column], far.median[row], far.expected[row, column]]
            values += [far.from_task[row, column], far.from_profile[row, column]]
            rows.append([design, seed, task, kinds[task], *values])
    names = ["design", "seed", "task", "type", "score", "task_median", "expected", "from_task", "from_profile"]
    table = pd.DataFrame(rows, columns=names)
    return table.sort_values("from_profile", key=np.abs, ascending=False, kind="stable", ignore_index=True)


def answer(material: Material) -> Answer | None:
    """Return the note and odd_cells.csv, None where no score is far off. Nothing is left out of any table."""
    odd = material.odd
    if odd is None or odd.empty:
        return None
    numbers = material.settings.numbers
    count = "1 score is" if len(odd) == 1 else f"{len(odd):,} scores are"
    parts = [_spelt(row, numbers) for row in odd.head(SHOWN).to_dict("records")]
    parts += [f"and {len(odd) - SHOWN} more"] if len(odd) > SHOWN else []
    note = (
        f"{count} far off, more than {FAR:g} robust standard deviations from the task's median and from the model's"
        f" profile, and {numbers.margin(LEAST)} at least: {'; '.join(parts)}. Look for another scale or split, a failed"
        " run, or a model trained on the task. They are in all tables; odd_cells.csv names all, and the verdict is"
        " repeated without their tasks."
    )
    return Answer("odd_cells", frames={"odd_cells": odd}, notes=[note])


def _spelt(row: Row, numbers: Numbers) -> str:
    score = numbers.score
    seed = f" (seed {row['seed']})" if row["seed"] else ""
    known = f"the task's median {score(row['task_median'])}, expected {score(row['expected'])}"
    return f"{row['design']}{seed} on {row['task']} {score(row['score'])} ({known})"
