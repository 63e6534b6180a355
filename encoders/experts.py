"""Experts of a mixture under autocast: their grouped products run in its format, as those of linear layers do."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS, grouped_mm_experts_forward

GROUPED = "grouped_mm"  # transformers' own, where a model says nothing else
UNDER_AUTOCAST = "grouped_mm_under_autocast"


class _Cast:
    """An experts module as `grouped_mm_experts_forward` reads it, its weights in another format."""

    def __init__(self, experts: nn.Module, dtype: torch.dtype) -> None:
        self._experts, self._dtype = experts, dtype

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._experts, name)
        return value.to(self._dtype) if isinstance(value, nn.Parameter) else value


def grouped_under_autocast(experts: nn.Module, hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
    """[N, D] of hidden [N, D]: the experts `chosen` [N, k] for each token, summed with `weights` [N, k].

    transformers' grouped products, which autocast does not reach: under it their weights, and so their inputs, are
    rounded to its format here. The sum over a token's experts stays in the format of `hidden`.
    """
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        experts = _Cast(experts, torch.get_autocast_dtype(kind))  # type: ignore[assignment]
    result: Tensor = grouped_mm_experts_forward(experts, hidden, chosen, weights)
    return result


def is_experts(module: nn.Module) -> bool:
    """Whether `module` holds the weights of a layer's experts as one tensor each, which grouped products read."""
    return hasattr(module, "is_transposed") and hasattr(
        module, "has_gate"
    )  # transformers' `use_experts_implementation`


def use_autocast(backbone: PreTrainedModel) -> None:
    """Let the experts of `backbone`, where it has any, run under autocast in its format."""
    for module in backbone.modules():
        config: Any = getattr(module, "config", None)
        if is_experts(module) and config._experts_implementation == GROUPED:
            config._experts_implementation = UNDER_AUTOCAST


ALL_EXPERTS_FUNCTIONS.register(UNDER_AUTOCAST, grouped_under_autocast)
