"""Masks of dropout: on a CPU torch draws one number after another, which takes as long as a decoder's products."""

import numpy as np
import torch
from torch import Tensor


def draw_kept(like: Tensor, p: float) -> Tensor:
    """Return ones, each with probability 1 - p, and zeros, in the shape and number format of `like`.

    torch's generator decides, so that `torch.manual_seed` and gradient checkpointing work as usual. On a CPU it seeds
    numpy's SFC64, whose bits are compared 16 at a time: there p is met to 1 / 131,072.
    """
    if like.device.type != "cpu":
        return torch.empty_like(like).bernoulli_(1 - p)
    words = np.random.SFC64(int(torch.randint(1 << 62, ()))).random_raw(-(-like.numel() // 4))
    kept = words.view(np.uint16)[: like.numel()] >= round(65536 * p)
    return torch.from_numpy(kept.view(np.uint8)).view(like.shape).to(like.dtype)
