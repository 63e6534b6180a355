"""The last layers bidirectional, those below causal (BeLLM, arXiv 2311.05296)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cli.errors import UserError
from cli.limits import Limit
from encoders.attention.pattern import Pattern, Sees, earlier, whole_text


@dataclass(frozen=True)
class LastBidirectional(Pattern):
    """layers: so many, counted from the last, see both ways. Raises `UserError` where the decoder has fewer."""

    layers: int
    limits: ClassVar[Mapping[str, Limit]] = {"layers": Limit(1)}

    def of_layer(self, layer: int, layers: int) -> Sees:
        """The whole text in the last layers, the tokens before in the others."""
        if self.layers > layers:
            raise UserError(f"attn.layers={self.layers} is more than the {layers} layers of the decoder. Lower it.")
        return whole_text if layer >= layers - self.layers else earlier
