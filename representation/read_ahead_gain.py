"""What reading ahead brings: how much nearer q lies to s+ than to s-, layer by layer, with an interval."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from encoders.encoder import Encoder
from encoders.tokens import Batch
from poolers.base import INSTRUCTION, weighted_mean

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


def gain_of(values: Floats) -> Gain:
    """Summarise the differences [n] of n triples, at least two."""
    from scipy.stats import t

    n = len(values)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / n**0.5
    half = float(t.ppf((1 + LEVEL) / 2, n - 1)) * error
    share = float((values > 0).mean() + (values == 0).mean() / 2)
    return Gain(mean, mean - half, mean + half, share, n)
