"""Token Prepending (arXiv 2412.11556): a token before the text takes the state of the last one, layer after layer."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from cli.errors import UserError
from poolers.shared.base import PLACEHOLDER, TokenView

PLACES = "placeholders"  # the word by which a decoder is handed what `placeholders` returns, and hands it to its layers


def prepend(backbone: nn.Module, layers: Sequence[nn.Module], count: int | None) -> None:
    """Let a text's placeholder enter each of the layers 2 to `count` + 1 as its last token left the layer before.

    Raises `UserError` where there are too few layers; a layer raises it that its decoder does not hand `PLACES`.
    """
    if count is None:
        return
    if count >= len(layers):
        raise UserError(f"template.prepended={count} must be below the {len(layers)} layers of the decoder. Lower it.")
    for number, layer in enumerate(layers):
        if not hasattr(layer, "takes_last"):
            layer.register_forward_pre_hook(_replace, with_kwargs=True)
        layer.takes_last = 0 < number <= count  # type: ignore[assignment]
    backbone.prepended = count  # type: ignore[assignment]


def placeholders(tokens: TokenView, packed: bool) -> tuple[Tensor, Tensor]:
    """Return the places of the placeholders and of their texts' last tokens in [B * T]; packed: among real tokens."""
    width = tokens.roles.shape[1]
    own = (tokens.roles == PLACEHOLDER).flatten().nonzero().squeeze(1)
    last = own // width * width + tokens.last()[own // width]
    number = tokens.real.flatten().cumsum(0) - 1
    return (number[own], number[last]) if packed else (own, last)


def _replace(layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
    """Hook of a decoder layer. The places come with each call, since a layer may run again in the backward pass."""
    if PLACES not in kwargs:
        raise UserError(f"template.prepended does not reach {type(layer).__name__}. Give a base such as Llama or Qwen.")
    own, last = kwargs.pop(PLACES)
    states: Tensor = args[0]
    flat = states.flatten(0, -2)
    entering = flat.index_copy(0, own, flat.index_select(0, last)).view_as(states) if layer.takes_last else states
    return (entering, *args[1:]), kwargs
