"""Layer-weighted mean: the mean over tokens of every layer, summed with one trainable weight a layer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cli.limits import Limit, real
from poolers.shared.base import Pooler, States, TokenView, weighted_mean

LAST = 0.9  # the last layer's share with start="last"; nearer to one the softmax has no gradient


class LayerMean(Pooler):
    """sum over layers l of s_l m_l, s = softmax(rate w), m_l the mean of layer l over the pooled tokens.

    Equation 1 of ELMo (arXiv 1802.05365) without gamma, which no cosine depends on. L parameters w, nothing else.
    start: "uniform" (w = 0, as ELMo) or "last" (nearly the mean of the last layer). rate: of the shares' logits to w.
    unit: m_l has length 1 before the sum; else long states weigh more. which: which tokens are pooled, see `Pooler`.
    """

    consumes: ClassVar[Literal["last", "layers", "routers"]] = "layers"
    needs_training: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = {"rate": real(1e-6)}
    words: ClassVar[Mapping[str, Sequence[Any]]] = {"start": ("uniform", "last")}

    def __init__(self, hidden_size: int, num_layers: int, *, start: str, rate: float, unit: bool, **which: Any) -> None:
        super().__init__(hidden_size, num_layers, **which)
        self.rate, self.unit, self.reads_packed = rate, unit, True
        self.reduces_to = (f"mean {self.pool_instruction} {self.pool_eos} {self.pool_bos}",)
        self.weights = nn.Parameter(torch.zeros(num_layers))
        if start == "last" and num_layers > 1:
            self.weights.data[-1] = math.log(LAST / (1 - LAST) * (num_layers - 1)) / rate

    def reduce(self, layer: int, hidden: Any, tokens: TokenView) -> Tensor:
        """[B, D]: the mean over the pooled tokens of one layer."""
        return weighted_mean(hidden, self.pooled(tokens))

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, list)
        means = F.normalize(torch.stack(states), dim=-1) if self.unit else torch.stack(states)
        return torch.einsum("lbd,l->bd", means, (self.rate * self.weights).softmax(dim=0))
