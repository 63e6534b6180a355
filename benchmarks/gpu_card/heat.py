"""One heat: the cells of a model, in training or in encoding, in turn with the card's matrix products."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from benchmarks.gpu_card.contestants import Encoding, Training
from benchmarks.gpu_card.lengths import batch_lengths, heaviest, places_a_token, real_work, share
from benchmarks.gpu_card.model import EXECUTIONS, Card, Cell, Texts, card_config
from benchmarks.rounds import one_round

SIDE, SECONDS = 8192, 0.05  # of the square matrices; of a turn, about
ON_CPU = 256
PRECISION = {"tf32": "high", "fp32": "highest", "bf16": "highest"}  # of float32 products, by format


class Products:
    """Products of large square random matrices. format: bf16, fp32, or tf32: float32 numbers on the TF32 units."""

    def __init__(self, format: str, card: Card) -> None:
        self.format, self.card = format, card
        self.side = SIDE if card.device.type == "cuda" else ON_CPU
        self.times = 1

    def enter(self) -> None:
        """Make the matrices, run once, and see how many products a turn takes; not timed."""
        torch.set_float32_matmul_precision(PRECISION[self.format])
        dtype = torch.bfloat16 if self.format == "bf16" else torch.float32
        self.operands = [torch.randn(self.side, self.side, device=self.card.device).to(dtype) for _ in range(2)]
        self.times = 1
        self(None)
        self.times = max(1, round(SECONDS / self.card.seconds(lambda: self(None))))

    def __call__(self, _texts: Texts | None) -> float:
        """Return the FLOPs done."""
        a, b = self.operands
        for _ in range(self.times):
            _ = a @ b
        self.card.wait()
        return self.times * 2.0 * self.side**3

    def leave(self) -> None:
        """Free the matrices."""
        del self.operands
        torch.set_float32_matmul_precision("highest")


PARTS = {"training": Training, "encoding": Encoding}
POOLERS = ("eos", "lastlayer", "multilayer", "mean")
ATTENTIONS = ("causal", "bi")
HEADS = ("lastlayer", "multilayer")  # whose head has matrix products of its own, in float32
FORMATS = ("bf16", "tf32", "fp32")


@dataclass(frozen=True)
class Plan:
    """Settings of a heat. tokens: of a turn, about. seconds: no round begins that would end later. small: `SMALL`."""

    model: str
    part: str
    poolers: tuple[str, ...]
    tokens: int
    rounds: int
    seconds: float
    small: bool = False


def cells(poolers: Iterable[str]) -> list[Cell]:
    """Every pooler x attention x execution, and the trained heads once more with TF32."""
    grid = [Cell(p, a, e) for p in poolers for a in ATTENTIONS for e in EXECUTIONS]
    return [*grid, *(Cell(p, "bi", EXECUTIONS[-1], tf32=True) for p in poolers if p in HEADS)]


def run_heat(plan: Plan, backbone: PreTrainedModel, card: Card, keep: Callable[[dict[str, Any]], None]) -> None:
    """Run the rounds of `plan`; after each one `keep` gets the record of all so far."""
    runs = {
        c.name: PARTS[plan.part](c, card_config(plan.model, c.pooler, c.attn, plan.small), backbone, card)
        for c in cells(plan.poolers)
    }
    turns: dict[str, Any] = {**runs, **{name: Products(name, card) for name in FORMATS}}
    config = next(iter(runs.values())).config
    longest, budget, chunk_size = config["max_length"], config["token_budget"], config["trainer"]["chunk_size"]
    most = chunk_size if plan.part == "training" else None
    negatives = config["objective"]["hard_negatives"]
    lengths = batch_lengths(config["trainer"]["global_batch_size"], longest, config["seed"], negatives)
    batch = {"queries": len(lengths) // 3, "texts": len(lengths), "tokens": sum(lengths)}
    limits = {"max_length": longest, "token_budget": budget, "chunk_size": chunk_size}
    facts = {**asdict(plan), **limits, "batch": batch}
    vocabulary = backbone.config.get_text_config().vocab_size
    hardest = Texts.of(heaviest(lengths, budget, most), len(lengths), vocabulary)
    done: dict[str, Any] = {"works": [], "places_a_token": [], "rates": {name: [] for name in turns}}

    @contextmanager
    def inside(name: str) -> Iterator[None]:
        """Let it in, and let it take its memory; here it finds out what fits."""
        turns[name].enter()
        try:
            turns[name](hardest)
            yield
        finally:
            turns[name].leave()

    for number in until(range(plan.rounds), plan.seconds):
        chosen = share(lengths, budget, most, plan.tokens, number)
        texts = Texts.of(chosen, len(lengths), vocabulary)
        for name, rate in one_round(turns, texts, number, inside).items():
            done["rates"][name].append(rate)
        done["works"].append(asdict(real_work(chosen, budget, most)))
        done["places_a_token"].append(places_a_token(chosen, budget, most))
        keep({**facts, **done, "cells": {name: run.record() for name, run in runs.items()}})


def until(numbers: Iterable[int], seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[int]:
    """Yield numbers as long as one more round, if it takes as long as the longest so far, ends within `seconds`.

    The first is always yielded: a card that is too slow for one round shall at least give one.
    """
    start = before = clock()
    longest = 0.0
    for number in numbers:
        now = clock()
        longest = max(longest, now - before)
        before = now
        if longest and now + longest > start + seconds:
            return
        yield number
