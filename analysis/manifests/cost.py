"""Costs of a design, as the manifests of its runs say: trainable parameters, operations, training speed, memory."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from analysis.grids.formats import count, operations
from analysis.manifests.designs import Design
from records.lineage import OTHER_RUNS

COST_HEADER = ["Trainable", "Train FLOPs", "Train tok/s"]
PAIR_COST_HEADER = ["Trainable", "Train tok/s"]
PEAKS = {"process": "Peak MiB", "gpu": "Peak GPU MiB"}  # what `peak_memory_of` says; manifests without it: the process
MIXED_PEAKS = (
    "Peak MiB is of the GPU where it says so and of the whole process elsewhere; the two cannot be compared, and a"
    " design whose seeds ran on both has none."
)


def has_costs(designs: Mapping[str, Design]) -> bool:
    """Tell whether any design states a cost, so that a table has the columns."""
    return any(any(cost is not None for cost in costs(design)) for design in designs.values())


def costs(design: Design) -> tuple[int | None, float | None, float | None, float | None]:
    """Return (trainable parameters, operations, training tokens/s, peak bytes), None where no manifest says."""
    return design.parameters, training_flops(design), tokens_per_second(design), peak_memory(design)


def cost_header(kinds: Collection[str]) -> list[str]:
    """Return the names of the columns. kinds: those of `memory_kinds` of all designs in the table."""
    (kind,) = kinds if len(kinds) == 1 else ("process",)
    return [*COST_HEADER, PEAKS[kind]]


def cost_texts(design: Design, kinds: Collection[str]) -> list[str]:
    """Return the costs as the table prints them, "-" where unknown. kinds: of all designs in the table."""
    parameters, flops, speed, peak = costs(design)
    gpu = " (GPU)" if len(kinds) > 1 and peak is not None and memory_kinds([design]) == {"gpu"} else ""
    rates = ["-" if rate is None else f"{rate:,.0f}" for rate in (speed, peak and peak / 2**20)]
    return [count(parameters), operations(flops), rates[0], rates[1] + gpu]


def memory_kinds(designs: Iterable[Design]) -> set[str]:
    """Return whose peak memory the designs' runs state: "process", "gpu"; older manifests mean the process."""
    stated = [run.manifest for design in designs for run in design.runs if run.trained]
    return {str(m.get("peak_memory_of", "process")) for m in stated if m.get("peak_memory_bytes") is not None}


def memory_note(kinds: Collection[str]) -> str:
    """Return the remark on the column of a table of several kinds, with a space before it; "" for one kind."""
    return f" {MIXED_PEAKS}" if len(kinds) > 1 else ""


def pair_cost_texts(first: Design, second: Design) -> list[str]:
    """Return the costs of the second design against the first: parameters as a difference, speed as a ratio, or "-"."""
    more, speed, slower = "-", tokens_per_second(second), tokens_per_second(first)
    if first.parameters is not None and second.parameters is not None:
        step = second.parameters - first.parameters
        more = f"{'-' if step < 0 else '+'}{count(abs(step))}"
    return [more, "-" if speed is None or slower is None else f"x {speed / slower:.2f}"]


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


def peak_memory(design: Design) -> float | None:
    """Return the largest memory of training, bytes: the maximum over seeds; None where they state different kinds."""
    if len(memory_kinds([design])) > 1:
        return None
    return max(_numbers(design, "peak_memory_bytes"), default=None)


def _numbers(design: Design, key: str) -> list[float]:
    """Return the values of a design's trained runs; an untrained reference costs nothing."""
    values: list[Any] = [run.manifest.get(key) for run in design.runs if run.trained]
    return [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
