"""EOS (last-token) pooling: the last layer's state of the last real token."""

from torch import Tensor

from poolers.base import Pooler, States, TokenView


class LastToken(Pooler):
    """Model 1 of arXiv 2409.02727 (causal); also RepLLaMA and E5-Mistral. No parameters."""

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        return self.last_token(states, tokens)
