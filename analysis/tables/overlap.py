"""Number of the tasks' texts that were trained on, as manifests say; `tables=[overlap]` shows them task by task."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.manifests.designs import Run
from analysis.names import listed
from analysis.render import Section, Table
from analysis.scores.tasks import parts_of
from analysis.tables.comparison import Comparison

COUNTS = ["texts", "exact"]
TITLE = "Texts of the tasks that were trained on"


def section(compared: Comparison) -> Section | None:
    """Return a sentence, and the table where it is wanted; None where no design has a trained run."""
    runs = {label: [run for run in design.runs if run.trained] for label, design in compared.designs.items()}
    runs = {label: some for label, some in runs.items() if some}
    if not runs:
        none = "No manifest of a trained run stands beside these scores, so no text is known to be trained on."
        return Section("overlap", TITLE, notes=[none]) if "overlap" in compared.settings.tables else None
    table = overlap_table(runs, compared.tasks)
    counted = table.groupby("design").size().reindex(list(runs), fill_value=0)
    lacking = [label for label, number in counted.items() if number < len(compared.tasks)]
    notes = [f"How many texts of the tasks were trained on is not measured for {listed(lacking)}."] if lacking else []
    worst = table.sort_values(["share", "exact"], ascending=False, kind="stable").drop_duplicates("task")
    notes = [_found(worst), *notes] if len(worst) else notes
    if "overlap" not in compared.settings.tables or worst.empty:
        return Section("overlap", TITLE, notes=notes)
    caption = (
        "Distinct texts of each task, and how many stand in the training texts of any stage with the same words; the"
        " most over designs and seeds. What the base model read is not known."
    )
    shown = worst[["task", *COUNTS, "share"]].set_axis(["Task", "Texts", "Exact", "Share"], axis=1)
    made = Table("overlap", TITLE, caption, shown.reset_index(drop=True), {"Share": "{:.1%}".format})
    return Section("overlap", TITLE, [made], frames={"overlap": table}, notes=notes)


def overlap_table(runs: Mapping[str, list[Run]], tasks: list[str]) -> pd.DataFrame:
    """Return one row per design and task that was counted: texts, exact, share; of its seeds the largest share.

    A task that is the mean of others has their texts together.
    """
    rows = []
    for label, some in runs.items():
        for task in tasks:
            counted = [counts for run in some if (counts := _counts(run, task)) is not None]
            if len(counted) == len(some):
                rows.append({"design": label, "task": task, **max(counted, key=lambda counts: counts["share"])})
    return pd.DataFrame(rows, columns=["design", "task", *COUNTS, "share"])


def _counts(run: Run, task: str) -> dict[str, Any] | None:
    known = (run.manifest.get("evaluation") or {}).get("overlap") or {}
    parts = parts_of(task) or (task,)
    if not all(part in known for part in parts):
        return None
    sums = {key: sum(known[part][key] for part in parts) for key in COUNTS}
    return sums | {"share": sums["exact"] / max(1, sums["texts"])}


def _found(worst: pd.DataFrame) -> str:
    texts, exact = (int(worst[key].sum()) for key in COUNTS)
    if not exact:
        return f"No text of {len(worst)} tasks stands in the training texts with the same words."
    most = [f"{row['task']} {row['share']:.1%}" for row in worst.head(3).to_dict("records")]
    return (
        f"Of {texts:,} texts of {len(worst)} tasks, counted task by task, {exact:,} stand in the training texts with"
        f" the same words; the largest shares: {', '.join(most)}."
    )
