"""Multi-layer trainable pooling: trainable queries attend to one vector of each layer, plus trainable layer weights."""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from poolers.base import Pooler, TokenView, last_token, weighted_mean
from poolers.cross_attention import CrossAttentionHead


class MultiLayerTrainable(Pooler):
    """Models 3 (causal) and 5 (bidirectional) of arXiv 2409.02727: keys and values from H + W, H and W in R^{l x d}.

    tokens: a layer's vector is its "last" token's state (the paper, causal) or the "mean" (the paper,
    bidirectional); "all": every token of every layer is a key, attended layer by layer.
    layer_weights: whether W is there. head: the settings of `CrossAttentionHead`.
    """

    consumes: ClassVar[Literal["last", "layers"]] = "layers"
    needs_training: ClassVar[bool] = True

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        tokens: str,
        layer_weights: bool = True,
        pool_instruction: bool = False,
        **head: Any,
    ) -> None:
        super().__init__(hidden_size, num_layers, pool_instruction)
        self.tokens = tokens
        self.head = CrossAttentionHead(hidden_size, **head)
        self.layer_weights = nn.Parameter(torch.randn(num_layers, hidden_size) * 0.02) if layer_weights else None

    def reduce(self, layer: int, hidden: Tensor, tokens: TokenView) -> Tensor:
        """One vector a text, [B, D]; for tokens="all" the layer's partial attention, [B, H, N, d + 1]."""
        if self.tokens == "last":
            return last_token(hidden, tokens)
        pooled = tokens.pooled(self.pool_instruction)
        if self.tokens == "mean":
            return weighted_mean(hidden, pooled)
        states = hidden.float() if self.layer_weights is None else hidden.float() + self.layer_weights[layer]
        return torch.cat(self.head.partial(states, pooled), dim=-1)

    def forward(self, states: Tensor | list[Tensor], tokens: TokenView) -> Tensor:
        """Return [B, D]; states: the L reductions."""
        assert isinstance(states, list)
        if self.tokens == "all":
            parts = [s[..., :-1] for s in states]
            return self.head.finish(self.head.merge(parts, [s[..., -1:] for s in states]))
        stacked = torch.stack(states, dim=1)
        return self.head(stacked if self.layer_weights is None else stacked + self.layer_weights)
