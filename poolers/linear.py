"""A trainable linear map of one plain vector: the smallest head, a control for what the larger ones add."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn

from cli.limits import Limit
from poolers.shared.base import Pooler, States, TokenView


class Linear(Pooler):
    """W h, h the last layer's state of the "last" token or its "mean" over tokens (`tokens`); W starts orthogonal.

    match_params: W is a product of two matrices with a width between them that gives this many parameters; it stays
    linear. With fewer than 2 D^2 its rank is limited. which: which tokens are pooled, see `Pooler`.
    """

    needs_training: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = {"match_params": Limit(1, "one matrix")}
    words: ClassVar[Mapping[str, Sequence[Any]]] = {"tokens": ("last", "mean")}

    def __init__(
        self, hidden_size: int, num_layers: int, *, tokens: str, match_params: int | None = None, **which: Any
    ) -> None:
        super().__init__(hidden_size, num_layers, **which)
        self.tokens = tokens
        between = [] if match_params is None else [max(1, round(match_params / (2 * hidden_size)))]
        sizes = pairwise([hidden_size, *between, hidden_size])
        self.map = nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in sizes))
        for weight in self.map.parameters():
            nn.init.orthogonal_(weight)

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        return self.map(self.one_of(states, tokens, self.tokens))
