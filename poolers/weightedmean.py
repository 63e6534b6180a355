"""Position-weighted mean pooling: later tokens weigh more."""

from torch import Tensor

from poolers.shared.base import Pooler, States, TokenView, weighted_mean


class WeightedMean(Pooler):
    """sum_i i h_i / sum_i i over the pooled tokens i = 1..n (SGPT, arXiv 2202.08904, section 3.1.1). No parameters.

    Positions are counted over the pooled tokens alone, so padding, BOS and instruction move no weight.
    """

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        pooled = self.pooled(tokens)
        return weighted_mean(states, pooled.cumsum(dim=1) * pooled)
