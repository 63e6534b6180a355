"""From a record to figures: tokens a second, and what share of the card's matrix rates that is."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from benchmarks.gpu_card.lengths import counted
from benchmarks.gpu_card.model import card_config
from benchmarks.rounds import Spread, spread
from training.cost.flops import TrainingFlops, Work

Record = dict[str, Any]


@dataclass(frozen=True)
class Need:
    """FLOPs of some work. backbone: products in bf16; head: those of a trained head, in float32 (or TF32)."""

    backbone: float
    head: float

    @property
    def total(self) -> float:
        """Both."""
        return self.backbone + self.head

    def seconds(self, backbone_rate: float, head_rate: float) -> float:
        """Time at FLOPs a second of either kind."""
        return self.backbone / backbone_rate + self.head / head_rate


@dataclass(frozen=True)
class Figures:
    """Measurements of a cell, over the rounds in which it ran.

    of_bf16: all FLOPs over what bf16 products reach. of_limit: the time that the products would take, each at the rate
    of its own number format, over the time taken; the same where there is no head. once: as of_bf16, without
    GradCache's second forward pass (None in encoding). flops_a_second: all FLOPs over the time, the median.
    """

    tokens: Spread
    texts: Spread
    of_bf16: Spread
    of_limit: Spread
    once: Spread | None
    flops_a_second: float


def figures(record: Record, name: str) -> Figures | None:
    """The figures of cell `name` of a record; None where it never ran to its end."""
    cell, rates = record["cells"][name], record["rates"]
    rounds = [r for r, rate in enumerate(rates[name]) if rate > 0]
    if not rounds:
        return None
    works = [Work(**work) for work in record["works"]]
    needs = [need(record, cell, works[r]) for r in rounds]
    seconds = [works[r].tokens / rates[name][r] for r in rounds]
    bf16 = [rates["bf16"][r] for r in rounds]
    head = [rates["tf32" if cell["tf32"] else "fp32"][r] for r in rounds]
    once = None
    if record["part"] == "training":
        once = [need(record, cell, works[r], once=True).total / s for r, s in zip(rounds, seconds, strict=True)]
    every = list(zip(needs, seconds, bf16, head, strict=True))
    return Figures(
        tokens=spread([rates[name][r] for r in rounds]),
        texts=spread([works[r].texts / s for r, s in zip(rounds, seconds, strict=True)]),
        of_bf16=spread([n.total / s / b for n, s, b, _ in every]),
        of_limit=spread([n.seconds(b, h) / s for n, s, b, h in every]),
        once=spread([o / b for o, b in zip(once, bf16, strict=True)]) if once else None,
        flops_a_second=spread([n.total / s for n, s, _, _ in every]).median,
    )


def need(record: Record, cell: dict[str, Any], work: Work, once: bool = False) -> Need:
    """FLOPs of `work` in the record's part: real tokens, no padding; with GradCache's second pass unless `once`."""
    small = record["small"]
    total = _of(flops_of(record["model"], cell["pooler"], cell["attn"], small), record["part"], work, once)
    backbone = _of(flops_of(record["model"], "eos", cell["attn"], small), record["part"], work, once)
    return Need(backbone, total - backbone)


def _of(count: TrainingFlops, part: str, work: Work, once: bool) -> float:
    if part == "encoding":
        return count.forward(work)
    return (replace(count, again=0) if once else count).of(work)


@cache
def flops_of(model: str, pooler: str, attn: str, small: bool = False) -> TrainingFlops:
    """The cost of a cell of experiment=paper/<model>."""
    return counted(card_config(model, pooler, attn, small))
