"""Lengths of texts for an encoder, and the width of its vectors, before its weights are loaded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from encoders.templates import DEFAULT, Template


@dataclass(frozen=True)
class Measure:
    """`lengths`: (texts, what `template.asked` gave) -> tokens of each after truncation, `max_length` at most.

    width: E.
    """

    lengths: Callable[[Sequence[str], str], list[int]]
    width: int
    max_length: int
    model: str
    template: Template = DEFAULT


def measure_of(config: dict[str, Any]) -> Measure:
    """Return the measure of a configuration. Raises `UserError` where the model or its tokenizer cannot be read."""
    from encoders.backbone import load_config
    from encoders.loading import text_tokenizer

    shape = load_config(config["model"])
    tokenizer = text_tokenizer(config, shape.max_position_embeddings)
    return Measure(
        tokenizer.lengths, shape.hidden_size, tokenizer.max_length, str(config["model"]["path"]), tokenizer.template
    )
