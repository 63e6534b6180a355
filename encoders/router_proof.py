"""The proof at the start that what is read of routers are logits: transformers 5.2 hands out their softmax."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from encoders.attention import probe_ids
from encoders.routers import LOGITS, routers
from encoders.rows import last_states, one_text_each
from poolers.base import Pooler
from records.errors import UserError

ROUNDINGS = 16  # how far a sum may lie from the exact one, in its terms' rounding errors; measured: at most 2


@torch.no_grad()
def prove_routers(backbone: PreTrainedModel, poolers: Iterable[Pooler]) -> None:
    """Refuse a decoder whose routers do not hand out W h of each token, where one of `poolers` reads them.

    W h is computed here in float64, of the router's own weights and the hidden states that come into it for a small
    batch. transformers 5.2 hands out softmax(W h), of which the softmax of the readings would be one too many.
    """
    if all(pooler.consumes != "routers" for pooler in poolers):
        return
    wrong: list[int] = []

    def compare(index: int) -> Any:
        def hook(router: nn.Module, args: Any, output: Any) -> None:
            if not _is_product(router, args[0], output[LOGITS]):
                wrong.append(index)

        return hook

    handles = [router.register_forward_hook(compare(i)) for i, router in enumerate(routers(backbone))]
    training = backbone.training
    try:
        last_states(backbone.eval(), one_text_each(probe_ids(backbone)))
    finally:
        for handle in handles:
            handle.remove()
        backbone.train(training)
    if wrong:
        layers = ", ".join(map(str, wrong))
        raise UserError(
            f"The routers of {type(backbone).__name__} (MoE layers {layers}) do not hand out logits: what is read is "
            "no product of their weights with the hidden states. Use transformers >= 5.23 and a family whose router is a "
            "softmax over one linear layer, or a pooler that reads no routers."
        )


def _is_product(router: nn.Module, hidden: Tensor, read: Any) -> bool:
    """Whether `read` [N, E] is W h (+ b) of hidden [..., D] to rounding in the coarsest format on the way."""
    weight, bias = router.get_parameter("weight"), getattr(router, "bias", None)
    h, w = hidden.flatten(0, -2).double(), weight.double()
    if not isinstance(read, Tensor) or read.shape != (len(h), len(w)):
        return False
    exact = h @ w.T + (0.0 if bias is None else bias.double())
    coarsest = max(torch.finfo(x.dtype).eps for x in (hidden, weight, read))
    if hidden.is_cuda and torch.backends.cuda.matmul.allow_tf32:
        coarsest = max(coarsest, 2.0**-10)
    size = (h.square() @ w.square().T).sqrt() + exact.abs()  # of a random sum of roundings
    return bool(((read.double() - exact).abs() <= ROUNDINGS * coarsest * size).all())
