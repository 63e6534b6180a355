"""The routers of a mixture-of-experts decoder: which modules they are, and what they say of every token."""

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from cli.errors import UserError
from encoders.attention.probe import probe_ids, probed
from encoders.mixse import Sublayer
from poolers.shared.base import Pooler

LOGITS, WEIGHTS, CHOSEN = 0, 1, 2  # places in what transformers' routers return: before top-k, of the chosen, which


def routers(backbone: PreTrainedModel) -> list[Any]:
    """The router of every MoE layer, in order; none in a dense decoder. Each is a module with a `weight` [experts, D].

    They are the modules whose output transformers itself records for `output_router_logits=True`. In a dense decoder
    that adapter=mixse made a mixture they are the sublayers of its LoRA experts, attention and MLP of every layer.
    """
    kinds: list[type[nn.Module]] = []
    for module in backbone.modules():
        recorders = (getattr(module, "_can_record_outputs", None) or {}).get("router_logits", [])
        for recorder in recorders if isinstance(recorders, list) else [recorders]:
            kind = getattr(recorder, "target_class", recorder)
            if isinstance(kind, type) and getattr(recorder, "index", LOGITS) == LOGITS:
                kinds.append(kind)
    of_base = [m for m in backbone.modules() if isinstance(m, tuple(kinds))]
    return of_base or list(getattr(getattr(backbone, "mixture", None), "routers", ()))


def experts_of(backbone: PreTrainedModel) -> list[int]:
    """The number of routed experts of every MoE layer, in order; empty for a dense decoder."""
    return [len(router.weight) for router in routers(backbone)]


@contextmanager
def watched(backbone: PreTrainedModel, see: Callable[[int, Any], None]) -> Any:
    """Call `see(i, output)` once for MoE layer i (0 is the first) in the forward pass within this context.

    A router that runs again, as gradient checkpointing lets it, is seen once. `see` must not compute on what it gets.
    """
    seen: set[int] = set()

    def hook(index: int, _module: nn.Module, _inputs: Any, output: Any) -> None:
        if index not in seen:
            seen.add(index)
            see(index, output)

    handles = [router.register_forward_hook(partial(hook, i)) for i, router in enumerate(routers(backbone))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


ROUNDINGS = 16  # how far two ratios may lie apart, in rounding errors of the coarsest format; measured: at most 2


def prove_routers(backbone: PreTrainedModel, poolers: Iterable[Pooler]) -> None:
    """Refuse a decoder whose routers do not weigh experts by a softmax of what they hand out, where a pooler reads it.

    Of routers that weigh experts by sigmoids (DeepSeek-V3, GLM-4-MoE) the decoder never computes a softmax. Those of
    adapter=mixse are ours, and hand out no choice to prove it by.
    """
    if all(pooler.consumes != "routers" for pooler in poolers):
        return
    faults: list[int] = []

    def compare(index: int, router: Any, _args: Any, output: Any) -> None:
        if not isinstance(router, Sublayer) and not _is_softmax(output):
            faults.append(index)

    hooks = [router.register_forward_hook(partial(compare, i)) for i, router in enumerate(routers(backbone))]
    probed(backbone, probe_ids(backbone), hooks)
    if faults:
        raise UserError(
            f"The routers of {type(backbone).__name__} (MoE layers {', '.join(map(str, faults))}) do not weigh experts "
            "by a softmax of their logits, so routing weights as poolers read them would not be the decoder's. Give a "
            "base such as OLMoE, Qwen-MoE, Mixtral or DeepSeek-V2, or a pooler that reads no routers."
        )


def _is_softmax(output: Any) -> bool:
    """Return whether the weights of the chosen experts have the ratios of a softmax of the logits, not of sigmoids.

    output: logits [N, E], weights [N, k] and places [N, k] of the experts that a router chose. Ratios, since weights
    may be scaled, or normalised over the chosen; with k = 1 nothing is proved.
    """
    if not isinstance(output, tuple) or len(output) <= CHOSEN:
        return False
    logits, weights, chosen = (output[i].detach() for i in (LOGITS, WEIGHTS, CHOSEN))
    if weights.shape != chosen.shape or chosen.shape[-1] < 2:
        return False
    z = logits.double().gather(1, chosen)
    of_weights, of_softmax, of_sigmoids = (x - x[:, :1] for x in (weights.double().log(), z, F.logsigmoid(z)))
    allowed = ROUNDINGS * max(torch.finfo(x.dtype).eps for x in (logits, weights)) * (1 + 2 * z.abs().amax())
    off, off_sigmoids = ((of_weights - x).abs() for x in (of_softmax, of_sigmoids))
    return bool(off.max() <= allowed and off.sum() <= off_sigmoids.sum())
