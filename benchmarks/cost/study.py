"""The cost of a study: FLOPs of its recipe and of its scoring, and the time that a card takes for them."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from benchmarks.gpu_card.figures import Need, Record, figures, flops_of, need
from benchmarks.gpu_card.lengths import batch_lengths, real_work
from benchmarks.gpu_card.model import card_config
from training.cost.flops import Work

CELLS = {"m1": ("eos", "causal"), "m2": ("lastlayer", "causal"), "m3": ("multilayer", "causal")}
CELLS |= {"m4": ("lastlayer", "bi"), "m5": ("multilayer", "bi")}
BATCHES = 8  # whose lengths are averaged
HOUR = 3600.0
ASSUMED_SIGN = "≈"


@dataclass(frozen=True)
class Assumed:
    """FLOPs a second that stand in for what was not measured, and the share of them that is reached."""

    bf16: float
    fp32: float
    tf32: float
    utilisation: float


@dataclass(frozen=True)
class Hours:
    """GPU hours, and whether they rest on a measurement of this very cell."""

    hours: float
    measured: bool

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.hours + other.hours, self.measured and other.measured)

    def __str__(self) -> str:
        """GPU hours; what rests on assumed rates has a sign."""
        return f"{'' if self.measured else ASSUMED_SIGN}{self.hours:,.1f}"


def training_work(config: dict[str, Any], longer: float = 1.0, full: bool = False) -> Work:
    """The work of all steps of the recipe, without padding, on texts of the docstrings' lengths.

    longer: how many times as long texts are, before they are cut at max_length; full: all of max_length.
    """
    t, longest = config["trainer"], config["max_length"]
    found = Work()
    for seed in range(BATCHES):
        lengths = batch_lengths(t["global_batch_size"], longest, seed, config["objective"]["hard_negatives"])
        lengths = [longest if full else min(longest, round(longer * n)) for n in lengths]
        one = real_work(lengths, config["token_budget"], t["chunk_size"])
        found = Work(*(a + b for a, b in zip(astuple(found), astuple(one), strict=True)))
    return times(found, t["max_steps"] / BATCHES)


def scoring_work(config: dict[str, Any], texts: int, tokens: float) -> Work:
    """The work of encoding `texts` of `tokens` in all; squares at most: as if each text had 0 or max_length tokens."""
    chunks = tokens / config["token_budget"]
    return Work(round(chunks), texts, round(tokens), round(tokens * config["max_length"]))


def times(work: Work, factor: float) -> Work:
    """`factor` times `work`."""
    return Work(*(round(factor * value) for value in astuple(work)))


def needed(model: str, cell: str, part: str, work: Work, once: bool = False) -> Need:
    """FLOPs of `work` for a cell of the paper; part: training or encoding."""
    pooler, attn = CELLS[cell]
    record = {"model": model, "part": part, "small": False}
    return need(record, {"pooler": pooler, "attn": attn}, work, once)


def measured_rate(records: Sequence[Record], model: str, part: str, cell: str, tf32: bool = False) -> float | None:
    """FLOPs a second that were measured for a cell, in its quickest execution. tf32: with the head's products so."""
    rates = []
    for record in records:
        if (record["model"], record["part"], record["small"]) != (model, part, False):
            continue
        for name, found in record["cells"].items():
            if (found["pooler"], found["attn"], found["tf32"]) == (*CELLS[cell], tf32):
                measured = figures(record, name)
                rates += [measured.flops_a_second] if measured else []
    return max(rates, default=None)


def hours(found: Need, measured: float | None, assumed: Assumed, tf32: bool = False) -> Hours:
    """GPU hours of FLOPs, at the measured rate or else at the assumed ones; tf32: of the head's products."""
    if measured:
        return Hours(found.total / measured / HOUR, True)
    head = assumed.tf32 if tf32 else assumed.fp32
    return Hours(found.seconds(assumed.bf16, head) / assumed.utilisation / HOUR, False)


def base_config(model: str, cell: str = "m5") -> dict[str, Any]:
    """The configuration of a cell of the paper on a base."""
    return card_config(model, *CELLS[cell])


def coefficients(model: str, cell: str) -> Any:
    """The closed form of a cell: see `training.cost.flops.TrainingFlops`."""
    return flops_of(model, *CELLS[cell])
