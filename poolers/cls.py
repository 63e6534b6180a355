"""First-token pooling: the last layer's state of [CLS], or of whatever token stands first."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from poolers.shared.base import Pooler, States, TokenView


class FirstToken(Pooler):
    """The vector of BERT (arXiv 1810.04805) and SimCSE (arXiv 2104.08821, without supervision). No parameters."""

    @classmethod
    def takes_first(cls, settings: Mapping[str, Any]) -> bool:
        return True

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        return self.first_token(states, tokens)
