"""What a design cost: trainable parameters, operations, training speed, memory; as the manifests of its runs say."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from analysis.grids.formats import count, operations
from analysis.manifests.designs import Design

COST_HEADER = ["Trainable", "Train FLOPs", "Train tok/s"]
PEAKS = {"process": "Peak MiB", "gpu": "Peak GPU MiB"}  # what `peak_memory_of` says; manifests without it: the process
MIXED_PEAKS = (
    "Peak MiB is of the GPU where it says so and of the whole process elsewhere; the two cannot be compared, and a"
    " design whose seeds ran on both has none."
)


def has_costs(designs: Mapping[str, Design]) -> bool:
    """Whether any design states a cost, so that a table has the columns."""
    return any(any(cost is not None for cost in costs(design)) for design in designs.values())


def costs(design: Design) -> tuple[float | None, ...]:
    """Return (trainable parameters, operations, training tokens/s, peak bytes), None where no manifest says."""
    return design.parameters, training_flops(design), tokens_per_second(design), peak_memory(design)


def cost_header(kinds: Collection[str]) -> list[str]:
    """Return the names of the columns. kinds: those of `memory_kinds` of all designs in the table."""
    (kind,) = kinds if len(kinds) == 1 else ("process",)
    return [*COST_HEADER, PEAKS[kind]]


def cost_texts(design: Design, kinds: Collection[str]) -> list[str]:
    """Return the costs as the table prints them, "-" where unknown. kinds: of all designs in the table."""
    speed, peak = tokens_per_second(design), peak_memory(design)
    mebibytes = None if peak is None else peak / 2**20
    rates = ["-" if x is None else f"{x:,.0f}" for x in (speed, mebibytes)]
    own = memory_kinds([design]) if len(kinds) > 1 and peak is not None else set()
    return [
        count(design.parameters),
        operations(training_flops(design)),
        rates[0],
        rates[1] + " (GPU)" * (own == {"gpu"}),
    ]


def memory_kinds(designs: Iterable[Design]) -> set[str]:
    """Return of what the designs' runs state the peak memory: "process", "gpu"; older manifests mean the process."""
    stated = [run.manifest for design in designs for run in design.runs if run.trained]
    return {str(m.get("peak_memory_of", "process")) for m in stated if m.get("peak_memory_bytes") is not None}


def memory_note(kinds: Collection[str]) -> str:
    """Return what a table of several kinds has to say of its column, with a space before it; "" for one kind."""
    return f" {MIXED_PEAKS}" if len(kinds) > 1 else ""


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
    """Return the largest memory of training, bytes: the maximum over seeds; None where they state different kinds."""
    if len(memory_kinds([design])) > 1:
        return None
    return max(_numbers(design, "peak_memory_bytes"), default=None)


def _numbers(design: Design, key: str) -> list[float]:
    """The values of a trained design's runs; an untrained reference cost nothing."""
    found: list[Any] = [run.manifest.get(key) for run in design.runs if run.trained]
    return [value for value in found if isinstance(value, (int, float)) and not isinstance(value, bool)]
