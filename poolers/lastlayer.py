"""Last-layer trainable pooling: trainable queries attend to the last layer's token states."""

from typing import Any, ClassVar

from torch import Tensor

from poolers.base import Pooler, TokenView, last_token, weighted_mean
from poolers.cross_attention import CrossAttentionHead


class LastLayerTrainable(Pooler):
    """Models 2 (causal) and 4 (bidirectional) of arXiv 2409.02727, with padding masked out of the keys.

    tokens: what the head reads: "all" token states (the paper), or one key: the "last" token's state or the "mean".
    head: num_queries, num_heads, head_dim, mlp, mlp_factor of `CrossAttentionHead`.
    """

    needs_training: ClassVar[bool] = True

    def __init__(
        self, hidden_size: int, num_layers: int, tokens: str, pool_instruction: bool = False, **head: Any
    ) -> None:
        super().__init__(hidden_size, num_layers, pool_instruction)
        self.tokens = tokens
        self.head = CrossAttentionHead(hidden_size, **head)

    def forward(self, states: Tensor | list[Tensor], tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        pooled = tokens.pooled(self.pool_instruction)
        if self.tokens == "all":
            return self.head(states, pooled)
        one = last_token(states, tokens) if self.tokens == "last" else weighted_mean(states, pooled)
        return self.head(one[:, None])
