"""Dropout whose mask is cheap to draw on a CPU."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

UNIT = 1 << 16  # probabilities are in units of 2^-16


class QuickDropout(nn.Module):
    """Inverted dropout as `torch.nn.Dropout`; on a CPU the mask comes from numpy's SFC64.

    torch draws Bernoulli masks on a CPU one by one: a third of a LoRA step went there (docs/performance.md). The seed
    of each mask is drawn from torch's generator, so `torch.manual_seed` and gradient checkpointing work as usual.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Zero each entry with probability p and scale the rest by 1 / (1 - p); x as it is outside training."""
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        seed = int(torch.randint(1 << 62, ()))
        bits = np.frombuffer(np.random.Generator(np.random.SFC64(seed)).bytes(2 * x.numel()), dtype=np.uint16)
        kept = torch.from_numpy(bits >= round(self.p * UNIT)).view(x.shape)
        return x * (kept.to(x.dtype) / (1 - self.p))

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
