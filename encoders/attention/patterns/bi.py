"""Bidirectional attention: every token sees every token."""

from typing import ClassVar

from encoders.attention.pattern import Pattern, Sees, whole_text


class Bidirectional(Pattern):
    """Every layer bidirectional."""

    alike: ClassVar[bool] = True

    def of_layer(self, layer: int, layers: int) -> Sees:
        """Always the whole text."""
        return whole_text
