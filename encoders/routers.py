"""The routers of a mixture-of-experts decoder: which modules they are, and what they say of every token."""

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
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

    A router that runs again within the context, as gradient checkpointing lets it, is seen once. `see` must not compute
    on what it gets: a product inside a checkpointed layer would be missed when that layer is run again.
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


ROUNDINGS = 16  # how far a sum may lie from the exact one, in its terms' rounding errors; measured: at most 2
NO_LOGITS = (
    "do not hand out logits: what is read is no product of their weights with the hidden states. Use transformers >= "
    "5.23 and a family whose router is a softmax over one linear layer, or a pooler that reads no routers."
)
NO_SOFTMAX = (
    "do not weigh experts by a softmax of their logits (a sigmoid?), so routing weights as poolers read them would not "
    "be the decoder's. Give a base with softmax routers, such as OLMoE, Qwen-MoE, Mixtral or DeepSeek-V2, or a pooler "
    "that reads no routers."
)


def prove_routers(backbone: PreTrainedModel, poolers: Iterable[Pooler]) -> None:
    """Refuse a decoder whose routers do not hand out W h of each token, where one of `poolers` reads them.

    W h is computed here in float64 for a small batch; transformers 5.2 hands out softmax(W h). Routers that weigh
    experts otherwise (sigmoids in DeepSeek-V3, GLM-4-MoE) are refused too: the decoder never computes their softmax.
    Those of adapter=mixse are ours, and hand out no choice to prove it by.
    """
    if all(pooler.consumes != "routers" for pooler in poolers):
        return
    faults: dict[str, list[int]] = {NO_LOGITS: [], NO_SOFTMAX: []}

    def compare(index: int, router: Any, args: Any, output: Any) -> None:
        if not _is_product(router, args[0], output[LOGITS]):
            faults[NO_LOGITS].append(index)
        elif not isinstance(router, Sublayer) and not _is_softmax(output):
            faults[NO_SOFTMAX].append(index)

    hooks = [router.register_forward_hook(partial(compare, i)) for i, router in enumerate(routers(backbone))]
    probed(backbone, probe_ids(backbone), hooks)
    for fault, layers in faults.items():
        if layers:
            numbers = ", ".join(map(str, layers))
            raise UserError(f"The routers of {type(backbone).__name__} (MoE layers {numbers}) {fault}")


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


def _is_product(router: Any, hidden: Tensor, read: Any) -> bool:
    """Return whether `read` [N, E] is W h (+ b) of hidden [..., D] to rounding in the coarsest format on the way."""
    weight, bias = router.weight, getattr(router, "bias", None)
    h, w = hidden.flatten(0, -2).double(), weight.double()
    if not isinstance(read, Tensor) or read.shape != (len(h), len(w)):
        return False
    exact = h @ w.T + (0.0 if bias is None else bias.double())
    coarsest = max(torch.finfo(x.dtype).eps for x in (hidden, weight, read))
    if hidden.is_cuda and torch.backends.cuda.matmul.allow_tf32:
        coarsest = max(coarsest, 2.0**-10)
    size = (h.square() @ w.square().T).sqrt() + exact.abs()  # of a random sum of roundings
    return bool(((read.double() - exact).abs() <= ROUNDINGS * coarsest * size).all())
