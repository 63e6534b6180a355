"""One layer read without parameters: what a decoder's middle holds, against its end."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from torch import Tensor

from cli.errors import UserError
from cli.limits import Limit
from poolers.cls import FirstToken
from poolers.eos import LastToken
from poolers.mean import Mean
from poolers.shared.base import Pooler, States, TokenView
from poolers.weightedmean import WeightedMean

POOLINGS: dict[str, type[Pooler]] = {"eos": LastToken, "mean": Mean, "weightedmean": WeightedMean, "cls": FirstToken}


class Layer(Pooler):
    """The states of layer `layer` (0 to L-1; L-1 is the last, after the final norm), pooled as `pooling` says.

    No parameters. which: which tokens are pooled, see `Pooler`. With layer L-1 it is `pooling` itself.
    """

    consumes: ClassVar[Literal["last", "layers"]] = "layers"
    limits: ClassVar[Mapping[str, Limit]] = {"layer": Limit(0)}
    words: ClassVar[Mapping[str, Sequence[Any]]] = {"pooling": tuple(POOLINGS)}

    def __init__(self, hidden_size: int, num_layers: int, *, layer: int, pooling: str, **which: Any) -> None:
        super().__init__(hidden_size, num_layers, **which)
        if layer >= num_layers:
            raise UserError(f"pooler.layer is {layer}; this model's layers are 0 to {num_layers - 1}.")
        self.layers = [layer]
        self.inner = POOLINGS[pooling](hidden_size, num_layers, **which)

    @classmethod
    def takes_last(cls, settings: Mapping[str, Any]) -> bool:
        return settings["pooling"] in POOLINGS and POOLINGS[settings["pooling"]].takes_last(settings)

    @classmethod
    def takes_first(cls, settings: Mapping[str, Any]) -> bool:
        return settings["pooling"] in POOLINGS and POOLINGS[settings["pooling"]].takes_first(settings)

    def reduce(self, layer: int, hidden: Tensor, tokens: TokenView) -> Tensor:
        return self.inner(hidden, tokens)

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, list)
        return states[0]
