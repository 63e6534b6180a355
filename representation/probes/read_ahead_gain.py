"""What reading ahead brings: how much nearer q lies to s+ than to s-, layer by layer, with an interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from encoders.encoder import Encoder
from encoders.tokens import Batch
from poolers.base import INSTRUCTION, weighted_mean
from representation.student import student

Floats = NDArray[np.float64]
LEVEL = 0.95


@dataclass(frozen=True)
class Gain:
    """`mean` of cos(q, s+) - cos(q, s-) over `count` triples, Student's interval of it, and the share of triples above
    zero; those at zero count half."""

    mean: float
    low: float
    high: float
    share: float
    count: int


def pooled_openings(encoder: Encoder, batch: Batch) -> Tensor:
    """[L, B, D] float32: the mean over A's tokens (role INSTRUCTION) of each layer's states, the last normed."""
    weights = (batch.roles == INSTRUCTION).float()
    count = encoder.pooler.num_layers
    return torch.stack(encoder.each_layer(batch, range(count), lambda _, hidden: weighted_mean(hidden, weights)))


def gains(q: Tensor, plus: Tensor, minus: Tensor) -> Floats:
    """[...] of vectors [..., D]: cos(q, s+) - cos(q, s-). Exactly zero where s+ and s- are the same."""
    q, plus, minus = (torch.nn.functional.normalize(x.double(), dim=-1) for x in (q, plus, minus))
    result: Floats = ((q * plus).sum(dim=-1) - (q * minus).sum(dim=-1)).cpu().numpy()
    return result


def gains_of(seeds: Sequence[Floats]) -> list[Gain]:
    """Summarise each layer of the differences [L, n] of n triples, at least two, of one array for each seed.

    A triple's differences are averaged over seeds before the interval over triples is taken; the share is over both.
    """
    return [gain_of(layer) for layer in np.stack(seeds).swapaxes(0, 1)]


def gain_of(values: Floats) -> Gain:
    """Summarise the differences [seeds, n] of one layer."""
    mean = values.mean(axis=0)
    low, high = student(mean, LEVEL)
    share = float((values > 0).mean() + (values == 0).mean() / 2)
    return Gain(float(mean.mean()), low, high, share, len(mean))
