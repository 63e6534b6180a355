"""Cost of each design, as the manifests of its runs say: trainable parameters, operations, training speed, memory."""

from typing import Any

import pandas as pd

from analysis.formats import count, operations, whole
from analysis.manifests.designs import Design
from analysis.render import Section
from analysis.tables.comparison import Comparison
from records.earlier_runs import OTHER_RUNS

FORMATS = {"Trainable": count, "Train FLOPs": operations, "Train tok/s": whole, "Peak MiB": whole}


def section(compared: Comparison) -> Section | None:
    """Return the table of costs, None where no manifest states one; result.json has the numbers in full."""
    if not any(cost is not None for design in compared.designs.values() for cost in costs(design)):
        return None
    shown, rest = compared.highest(max(1, compared.settings.rows_shown))
    rows = [(*values, peak and peak / 2**20) for *values, peak in (costs(compared.designs[label]) for label in shown)]
    table = pd.DataFrame(rows, columns=list(FORMATS), dtype=float)
    table.insert(0, "Design", list(map(compared.design_text, shown)))
    caption = "Trainable parameters, and operations, speed and peak memory of training."
    made = compared.table("costs", "Costs", caption, table, formats=FORMATS, rest=rest)
    return Section("costs", "Costs", [made])


def costs(design: Design) -> tuple[int | None, float | None, float | None, float | None]:
    """Return (trainable parameters, operations, training tokens/s, peak bytes), None where no manifest says.

    Speed is the mean over seeds, the peak their maximum: of the GPU where there is one, else of the process.
    """
    peak = max(_numbers(design, "peak_memory_bytes"), default=None)
    return design.parameters, training_flops(design), tokens_per_second(design), peak


def tokens_per_second(design: Design) -> float | None:
    """Return the training speed, tokens/s: the mean over seeds."""
    values = _numbers(design, "tokens_per_second")
    return sum(values) / len(values) if values else None


def training_flops(design: Design) -> float | None:
    """Return the floating-point operations of training, those of the runs before it included: the mean over seeds.

    None where a run or one of those before it, merged into the base, started as or mixed, does not state them.
    """
    spent = [
        [run.manifest, *(part for key in OTHER_RUNS.values() for part in run.manifest.get(key) or ())]
        for run in design.runs
        if run.trained
    ]
    known = [[part.get("flops") for part in parts] for parts in spent]
    if not known or any(flops is None for of_run in known for flops in of_run):
        return None
    return sum(map(sum, known)) / len(known)


def _numbers(design: Design, key: str) -> list[float]:
    """Return the values of a design's trained runs that state one; an untrained reference costs nothing."""
    values: list[Any] = [run.manifest.get(key) for run in design.runs if run.trained]
    return [value for value in values if value is not None]
