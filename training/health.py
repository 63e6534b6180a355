"""Collapse, detected and named: a loss at chance, or vectors that are all alike."""

import math

from torch import Tensor
from torch.nn import functional as F

CHANCE_MARGIN = 0.02  # share of log K
ALIKE = 0.99  # mean cosine of different texts


def collapse(loss: float, candidates: int, vectors: Tensor) -> str | None:
    """Return what is wrong with a trained run, or None.

    loss: mean training loss of the last steps, nats; candidates: documents a query was compared with;
    vectors: [N, E] embeddings of different texts.
    """
    chance = math.log(candidates)
    if loss > chance * (1 - CHANCE_MARGIN):
        return f"loss {loss:.3f} is at chance, log({candidates}) = {chance:.3f}: nothing was learned"
    cosine = mean_cosine(vectors)
    if cosine > ALIKE:
        return f"embeddings are all alike: mean cosine of different texts {cosine:.4f}"
    return None


def mean_cosine(vectors: Tensor) -> float:
    """Mean cosine over all pairs of different rows of [N, E], from the norm of the rows' sum."""
    unit = F.normalize(vectors.double(), dim=-1)
    n = len(unit)
    return float((unit.sum(dim=0).square().sum() - n) / (n * (n - 1)))
