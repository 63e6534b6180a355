"""Records of measured heats, and their figures: tokens a second, and what share of the card's matrix rates that is."""

import json
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.gpu_card.lengths import counted
from benchmarks.gpu_card.model import Card, card_config
from benchmarks.rounds import Spread, spread
from records.atomic import write_json
from records.manifest import code, environment
from training.cost.flops import TrainingFlops, Work

Record = dict[str, Any]
FILE = "gpu.json"
MEASURED = Path(__file__).resolve().parents[1] / "measured"
ONE = ("device", "model", "part", "poolers", "small")  # what tells records apart: a newer one replaces an older one


def taken(card: Card) -> dict[str, Any]:
    """On what, when, and by which code."""
    return {"date": str(date.today()), "device": card.name, "code": code(), "versions": environment()["versions"]}


def read_records(folder: Path) -> list[Record]:
    """All records below `folder`; none where nothing was measured."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def keep_record(folder: Path, record: Record) -> None:
    """Add `record`, in place of an older one of the same card, model, part and poolers."""
    record = json.loads(json.dumps(record))  # as it will be read: tuples are lists
    others = [r for r in read_records(folder) if any(r[key] != record[key] for key in ONE)]
    write_json(folder / FILE, [*others, record])


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
    cell, rates, rows = record["cells"][name], record["rates"], []
    heads = rates["tf32" if cell["tf32"] else "fp32"]
    for tokens_a_second, bf16, head, sums in zip(rates[name], rates["bf16"], heads, record["works"], strict=True):
        if tokens_a_second > 0:
            work = Work(**sums)
            seconds = work.tokens / tokens_a_second
            flops, once = (need(record, cell, work, once) for once in (False, True))
            rate, limit = flops.total / seconds, flops.seconds(bf16, head) / seconds
            rows.append((tokens_a_second, work.texts / seconds, rate / bf16, limit, once.total / seconds / bf16, rate))
    if not rows:
        return None
    tokens, texts, of_bf16, of_limit, of_once, a_second = (spread(column) for column in zip(*rows, strict=True))
    return Figures(tokens, texts, of_bf16, of_limit, of_once if record["part"] == "training" else None, a_second.median)


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
