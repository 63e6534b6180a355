"""Causal attention: each token sees those before it, as the decoder was pretrained."""

from typing import ClassVar

from encoders.attention.pattern import Pattern, Sees, earlier


class Causal(Pattern):
    """Every layer causal."""

    alike: ClassVar[bool] = True

    def of_layer(self, layer: int, layers: int) -> Sees:
        """Always the tokens before."""
        return earlier
