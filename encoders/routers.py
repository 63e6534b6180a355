"""The routers of a mixture-of-experts decoder: which modules they are, and what they say of every token."""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from torch import nn
from transformers import PreTrainedModel

LOGITS, WEIGHTS, CHOSEN = 0, 1, 2  # places in what transformers' routers return: before top-k, of the chosen, which


def routers(backbone: PreTrainedModel) -> list[nn.Module]:
    """The router of every MoE layer, in order; none in a dense decoder. Each has a `weight` of [experts, D].

    They are the modules whose output transformers itself records for `output_router_logits=True`.
    """
    kinds = tuple(_recorded(backbone))
    return [m for m in backbone.modules() if isinstance(m, kinds)] if kinds else []


def _recorded(backbone: PreTrainedModel) -> list[type[nn.Module]]:
    """Classes of the modules that `backbone`, or a decoder inside it, records as routers."""
    found: list[type[nn.Module]] = []
    for module in backbone.modules():
        recorders = (getattr(module, "_can_record_outputs", None) or {}).get("router_logits", [])
        for recorder in recorders if isinstance(recorders, list) else [recorders]:
            kind = getattr(recorder, "target_class", recorder)
            if isinstance(kind, type) and getattr(recorder, "index", LOGITS) == LOGITS:
                found.append(kind)
    return found


def experts_of(backbone: PreTrainedModel) -> list[int]:
    """The number of routed experts of every MoE layer, in order; empty for a dense decoder."""
    return [len(router.get_parameter("weight")) for router in routers(backbone)]


@contextmanager
def watched(backbone: PreTrainedModel, see: Callable[[int, Any], None]) -> Any:
    """Call `see(i, output)` once for MoE layer i (0 is the first) in the forward pass within this context.

    A router that runs again within the context, as gradient checkpointing lets it, is seen once. `see` must not compute
    on what it gets: a product inside a checkpointed layer would be missed when that layer is run again.
    """
    seen: set[int] = set()

    def hook_of(index: int) -> Callable[[nn.Module, Any, Any], None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if index not in seen:
                seen.add(index)
                see(index, output)

        return hook

    handles = [router.register_forward_hook(hook_of(i)) for i, router in enumerate(routers(backbone))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
