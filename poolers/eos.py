"""EOS (last-token) pooling: the last layer's state of the last real token."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from poolers.shared.base import Pooler, States, TokenView


class LastToken(Pooler):
    """Model 1 of arXiv 2409.02727 (causal); also RepLLaMA and E5-Mistral. No parameters."""

    @classmethod
    def takes_last(cls, settings: Mapping[str, Any]) -> bool:
        return True

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        return self.last_token(states, tokens)
