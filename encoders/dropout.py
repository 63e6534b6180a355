"""Dropout whose mask is cheap to draw on a CPU."""

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor


def draw_kept(like: Tensor, p: float) -> Tensor:
    """Return uint8 of the shape of `like`: one with probability 1 - p, else zero.

    torch draws Bernoulli masks on a CPU one number at a time: a third of a LoRA step went there (docs/performance.md).
    Here the bytes come from numpy's SFC64, whose seed is drawn from torch's generator, so that `torch.manual_seed` and
    gradient checkpointing work as usual. A byte below 256 p drops its entry; the byte on the edge does so with the
    probability that is left, so that p is met to the last bit of a float64.
    """
    if like.device.type != "cpu" or isinstance(like, FakeTensor):  # the latter has shapes alone, to count with
        return torch.empty_like(like, dtype=torch.uint8).bernoulli_(1 - p)
    draw = np.random.Generator(np.random.SFC64(int(torch.randint(1 << 62, ()))))
    count = like.numel()
    words = draw.integers(0, 2**64 - 1, size=-(-count // 8), dtype=np.uint64, endpoint=True)
    numbers = words.view(np.uint8)[:count]
    edge = int(256 * p)
    kept = (numbers >= edge).view(np.uint8)
    undecided = np.flatnonzero(numbers == edge)
    kept[undecided] = draw.random(len(undecided)) >= 256 * p - edge
    return torch.from_numpy(kept).view(like.shape)


class QuickDropout(nn.Module):
    """Inverted dropout as `torch.nn.Dropout`, with the masks of `draw_kept`."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Zero each entry with probability p and scale the rest by 1 / (1 - p); x as it is outside training."""
        if not self.training or self.p == 0:
            return x
        return x * (draw_kept(x, self.p).to(x.dtype) / (1 - self.p))

    def extra_repr(self) -> str:
        """What print() shows."""
        return f"p={self.p}"


def use_quick_dropout(model: nn.Module) -> None:
    """Replace the `nn.Dropout` of every LoRA layer in `model`."""
    for module in model.modules():
        dropouts = getattr(module, "lora_dropout", None)
        if isinstance(dropouts, nn.ModuleDict):
            for name, dropout in dropouts.items():
                if isinstance(dropout, nn.Dropout):
                    dropouts[name] = QuickDropout(dropout.p)
