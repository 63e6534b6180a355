"""Floating-point operations of training, counted from shapes: matrix products and attention, padding as it is run."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from encoders.cost.flops import Polynomial, Work, flop_counter, polynomials
from encoders.encoder import Encoder
from encoders.tokens import Batch
from training.cost.check import empty_encoder


@dataclass(frozen=True)
class TrainingFlops:
    """FLOPs of a chunk: forward, and with backward. again: how often GradCache and checkpointing repeat the first."""

    forward: Polynomial
    both: Polynomial
    again: int

    def of(self, work: Work, spared: Work | None = None) -> float:
        """FLOPs of training on `work`; spared: the part of it that GradCache does not run a second time."""
        return self.both(work) + self.again * self.forward(work) - (self.forward(spared) if spared else 0.0)


def training_flops(config: dict[str, Any]) -> TrainingFlops:
    """Count on a few tokens, as `polynomials` says. The optimiser is not counted."""
    trainer = config["trainer"]
    encoder = empty_encoder({**config, "model": {**config["model"], "attn_implementation": "eager"}})
    forward, both = polynomials(encoder, partial(_count, encoder, cached=config["backbone"]["frozen"]))
    checkpointed = trainer["gradient_checkpointing"] and not config["backbone"]["frozen"]
    return TrainingFlops(forward, both, int(trainer["gradcache"]) + int(checkpointed))


def _count(encoder: Encoder, batch: Batch, cached: bool) -> tuple[int, int]:
    """FLOPs of the forward pass of `batch`, and of forward and backward together.

    cached: whether the backbone's states are read from disk, so that a step costs the head's part alone.
    """
    with flop_counter() as counter:
        vectors = encoder(batch)
        forward = counter.get_total_flops()
        vectors.sum().backward()
    saved = 0
    if cached:
        with flop_counter() as backbone, torch.no_grad():
            encoder.run_backbone(batch)
        saved = backbone.get_total_flops()
    return forward - saved, counter.get_total_flops() - saved
