"""LoRA layers that read the same input, computed together under one mask of dropout.

Of several adapters in a layer, the experts of a mixture, the sum is taken with a weight for each token and expert.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from encoders.dropout import draw_kept

TOGETHER = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))  # read one input, one after another
ADAPTER = "default"


def fuse_lora(model: nn.Module, adapters: Sequence[str] = (ADAPTER,), router: Any = None) -> int:
    """Let the plain LoRA layers of `model` compute by `fused_lora`; return how many do. The others stay as they are.

    PEFT's modules keep their parameters, so that saving, merging and the optimiser see nothing of it. adapters: those
    of each layer. router: its `weights` [..., n] at the time of a call are those of the adapters, in that order.
    """
    fused = 0
    for parent in model.modules():
        children: dict[str, Any] = {n: child for n, child in parent.named_children() if _is_plain(child, adapters)}
        groups = [[children.pop(n) for n in names if n in children] for names in TOGETHER]
        for group in [*groups, *([child] for child in children.values())]:
            fused += len(group)
            siblings = Siblings(group, adapters, router)
            for number, layer in enumerate(group):
                layer.forward = partial(siblings.call, number)
    return fused


def _is_plain(module: nn.Module, adapters: Sequence[str]) -> bool:
    """Return whether `module` is a linear layer with these adapters, LoRA as published and nothing else."""
    from peft.tuners.lora import Linear

    return (
        type(module) is Linear
        and type(module.base_layer) is nn.Linear
        and list(module.lora_A) == list(adapters)
        and not module.lora_variant
    )


class Siblings:
    """LoRA layers that a decoder calls one after another on the same tensor: q, k and v; or gate and up.

    The first that is called computes all; the others hand out what is theirs.
    """

    def __init__(self, layers: Sequence[Any], adapters: Sequence[str], router: Any) -> None:
        self.layers, self.adapters, self.router = layers, adapters, router
        self.waiting: dict[int, tuple[Tensor, Tensor]] = {}  # of layer i: the input, its output

    def call(self, number: int, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Output [..., D_i] of layer `number` for x: [..., D]."""
        layer = self.layers[number]
        if args or kwargs or layer.merged or layer.disable_adapters:
            return type(layer).forward(layer, x, *args, **kwargs)
        waiting = self.waiting.pop(number, None)
        if waiting is not None and waiting[0] is x:
            return waiting[1]
        outputs = fused_lora(x, self.layers, self.adapters, self.router.weights if self.router else None)
        self.waiting = {i: (x, y) for i, y in enumerate(outputs) if i != number}
        return outputs[number]


def fused_lora(
    x: Tensor, layers: Sequence[Any], adapters: Sequence[str] = (ADAPTER,), weights: Tensor | None = None
) -> list[Tensor]:
    """W x + b + scaling sum over experts i of a_i B_i A_i dropout(x), of each layer.

    One adapter without weights: Hu et al. 2021 (arXiv 2106.09685), equation 3, and dropout before A as
    `peft.tuners.lora.Linear` has it, but of one mask for all layers. Several: Kang et al. 2024 (arXiv 2406.12034), the
    layer of MiXSE. x: [..., D]; weights: [..., n], the a_i of each token, or [n] of all. Returns [..., D_i] of each
    layer i, in the format of autocast, or of the weights. Layers share dropout rate and scaling.
    """
    kind, first = x.device.type, adapters[0]
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else layers[0].weight.dtype
    p = getattr(layers[0].lora_dropout[first], "p", 0.0) if layers[0].training else 0.0  # nn.Identity where it is zero
    flat = x.reshape(-1, x.shape[-1]).to(dtype)
    dropped = flat * draw_kept(flat, p) if p else flat
    down = [layer.lora_A[name].weight for layer in layers for name in adapters]
    parts = (dropped @ torch.cat(down).to(dtype).T).split(sum(len(a) for a in down) // len(layers), dim=1)
    outputs = []
    for layer, z in zip(layers, parts, strict=True):
        up = torch.cat([layer.lora_B[name].weight for name in adapters], dim=1).to(dtype)
        if weights is not None:  # A of the experts stand one above the other, B side by side
            each = weights.reshape(-1, len(adapters)).to(dtype)
            z = (z.unflatten(1, (len(adapters), -1)) * each[:, :, None]).flatten(1)  # noqa: PLW2901
        y = torch.addmm(layer.base_layer(flat), z, up.T, alpha=layer.scaling[first] / (1 - p))
        outputs.append(y.view(*x.shape[:-1], -1))
    return outputs
