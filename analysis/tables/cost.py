"""What a design cost: trainable parameters, operations, training speed, memory; as the manifests of its runs say."""

from collections.abc import Mapping
from typing import Any

from analysis.formats import count, operations
from analysis.reading.rows import Design

COST_HEADER = ["Trainable", "Train FLOPs", "Train tok/s", "Peak MiB"]


def has_costs(designs: Mapping[str, Design]) -> bool:
    """Whether any design states a cost, so that a table has the columns."""
    return any(any(cost is not None for cost in costs(design)) for design in designs.values())


def costs(design: Design) -> tuple[float | None, ...]:
    """Return (trainable parameters, operations, training tokens/s, peak bytes), None where no manifest says."""
    return design.parameters, training_flops(design), tokens_per_second(design), peak_memory(design)


def cost_texts(design: Design) -> list[str]:
    """Return the costs as the table prints them, "-" where unknown."""
    speed, peak = tokens_per_second(design), peak_memory(design)
    mebibytes = None if peak is None else peak / 2**20
    rates = ["-" if x is None else f"{x:,.0f}" for x in (speed, mebibytes)]
    return [count(design.parameters), operations(training_flops(design)), *rates]


PAIR_COST_HEADER = ["Trainable", "Train tok/s"]


def pair_cost_texts(first: Design, second: Design) -> list[str]:
    """Return what the second design costs beside the first: trainable parameters more or less, training speed as a
    ratio; "-" where unknown."""
    more, speeds = "-", [tokens_per_second(design) for design in (first, second)]
    if first.parameters is not None and second.parameters is not None:
        step = second.parameters - first.parameters
        more = f"{'-' if step < 0 else '+'}{count(abs(step))}"
    return [more, "-" if None in speeds else f"x {speeds[1] / speeds[0]:.2f}"]  # type: ignore[operator]


def tokens_per_second(design: Design) -> float | None:
    """Return the training speed, tokens/s: the mean over seeds."""
    values = _numbers(design, "tokens_per_second")
    return sum(values) / len(values) if values else None


def training_flops(design: Design) -> float | None:
    """Return the floating-point operations of training, those of the stages before it included: the mean over seeds.

    None where a run or one of its stages does not state them.
    """
    spent = [[run.manifest, *(run.manifest.get("lineage") or ())] for run in design.runs if run.trained]
    known = [[part.get("flops") for part in parts] for parts in spent]
    if not known or any(flops is None for own in known for flops in own):
        return None
    return sum(map(sum, known)) / len(known)


def peak_memory(design: Design) -> float | None:
    """Return the largest resident size of training, bytes: the maximum over seeds."""
    return max(_numbers(design, "peak_memory_bytes"), default=None)


def _numbers(design: Design, key: str) -> list[float]:
    """The values of a trained design's runs; an untrained reference cost nothing."""
    found: list[Any] = [run.manifest.get(key) for run in design.runs if run.trained]
    return [value for value in found if isinstance(value, (int, float)) and not isinstance(value, bool)]
