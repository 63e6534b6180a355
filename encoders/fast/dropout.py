"""Dropout whose mask is cheap to draw on a CPU."""

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor


def draw_kept(like: Tensor, p: float) -> Tensor:
    """Return uint8 of the shape of `like`: one with probability 1 - p, else zero.

    On a CPU the bytes come from numpy's SFC64 (docs/performance.md), its seed from torch's generator, so that
    `torch.manual_seed` and gradient checkpointing work as usual. A byte below 256 p drops its entry; the byte on the
    edge does so with the probability that is left, so that p is met to the last bit of a float64.
    """
    if like.device.type != "cpu" or isinstance(like, FakeTensor):  # the latter has shapes alone, to count with
        return torch.empty(like.shape, dtype=torch.uint8, device=like.device).bernoulli_(1 - p)
    draw = np.random.Generator(np.random.SFC64(int(torch.randint(1 << 62, ()))))
    count = like.numel()
    words = draw.integers(0, 2**64 - 1, size=-(-count // 8), dtype=np.uint64, endpoint=True)
    numbers = words.view(np.uint8)[:count]
    edge = int(256 * p)
    kept = (numbers >= edge).view(np.uint8)
    undecided = np.flatnonzero(numbers == edge)
    kept[undecided] = draw.random(len(undecided)) >= 256 * p - edge
    return torch.from_numpy(kept).view(like.shape)


class _Dropped(torch.autograd.Function):
    """x m / (1 - p) for a mask m of zeros and ones, of which a byte each is kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Tensor, p: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.p = p
        return x * (kept.to(x.dtype) / (1 - p))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (kept,) = ctx.saved_tensors
        return gradients[0] * (kept.to(gradients[0].dtype) / (1 - ctx.p)), None, None


class QuickDropout(nn.Module):
    """Inverted dropout as `torch.nn.Dropout`, with the masks of `draw_kept`."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Zero each entry with probability p and scale the rest by 1 / (1 - p); x as it is outside training."""
        if not self.training or self.p == 0:
            return x
        return cast(Tensor, _Dropped.apply(x, draw_kept(x, self.p), self.p))


def use_quick_dropout(model: nn.Module) -> None:
    """Replace the `nn.Dropout` of every LoRA layer in `model`."""
    for module in model.modules():
        dropouts = getattr(module, "lora_dropout", None)
        if isinstance(dropouts, nn.ModuleDict):
            for name, dropout in dropouts.items():
                if isinstance(dropout, nn.Dropout):
                    dropouts[name] = QuickDropout(dropout.p)
