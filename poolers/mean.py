"""Mean pooling: the average of the last layer's states over the pooled tokens."""

from torch import Tensor

from poolers.shared.base import Pooler, States, TokenView, weighted_mean


class Mean(Pooler):
    """Mean over the real tokens, by default all but instruction and BOS (GritLM, LLM2Vec). No parameters."""

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        return weighted_mean(states, self.pooled(tokens))
