"""PEFT's LoRA layers in fewer passes: masks of `draw_kept`, the adapter's product added to the base's own.

Of several adapters in a layer, the experts of a mixture, the sum is taken with a weight for each token and expert.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

ADAPTER = "default"


def fuse_lora(model: nn.Module, adapters: Sequence[str] = (ADAPTER,), router: Any = None) -> int:
    """Let the plain LoRA layers of `model` compute by `fused_lora`; return how many do. The others stay as they are.

    PEFT's modules keep their parameters, so that saving, merging and the optimiser see nothing of it. adapters: those
    of each layer. router: its `weights` [..., n] at the time of a call are those of the adapters, in that order.
    """
    layers: list[Any] = [module for module in model.modules() if _is_plain(module, adapters)]
    for layer in layers:
        layer.forward = partial(_forward, layer, adapters, router)
    return len(layers)


def _is_plain(module: nn.Module, adapters: Sequence[str]) -> bool:
    """Return whether `module` is a linear layer with these adapters, LoRA as published and nothing else."""
    from peft.tuners.lora import Linear

    if type(module) is not Linear or type(module.base_layer) is not nn.Linear:
        return False
    return list(module.lora_A) == list(adapters) and not module.lora_variant


def _forward(layer: Any, adapters: Sequence[str], router: Any, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    if args or kwargs or layer.merged or layer.disable_adapters:
        result: Tensor = type(layer).forward(layer, x, *args, **kwargs)
        return result
    return fused_lora(x, layer, adapters, router.weights if router else None)


def fused_lora(x: Tensor, layer: Any, adapters: Sequence[str] = (ADAPTER,), weights: Tensor | None = None) -> Tensor:
    """W x + b + scaling sum over experts i of a_i B_i A_i dropout(x).

    One adapter without weights: Hu et al. 2021 (arXiv 2106.09685), equation 3, and dropout before A as
    `peft.tuners.lora.Linear` has it. Several: Kang et al. 2024 (arXiv 2406.12034), the layer of MiXSE; one mask of
    dropout serves all experts. x: [..., D]; weights: [..., n], the a_i of each token, or [n] of all. Returns
    [..., D_out], in the format of autocast, or of the weights.
    """
    kind, first = x.device.type, adapters[0]
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else layer.weight.dtype
    p = getattr(layer.lora_dropout[first], "p", 0.0) if layer.training else 0.0  # nn.Identity where it is zero
    flat = x.reshape(-1, x.shape[-1]).to(dtype)
    # A of the experts stand one above the other, B side by side.
    down = torch.cat([layer.lora_A[name].weight for name in adapters]).to(dtype)
    up = torch.cat([layer.lora_B[name].weight for name in adapters], dim=1).to(dtype)
    z = (flat * draw_kept(flat, p) if p else flat) @ down.T
    if weights is not None:
        each = weights.reshape(-1, len(adapters)).to(dtype)
        z = (z.unflatten(1, (len(adapters), -1)) * each[:, :, None]).flatten(1)
    y = torch.addmm(layer.base_layer(flat), z, up.T, alpha=layer.scaling[first] / (1 - p))
    return y.view(*x.shape[:-1], -1)


def draw_kept(like: Tensor, p: float) -> Tensor:
    """Return a mask of dropout: ones, each with probability 1 - p, and zeros, in shape and format of `like`.

    torch's generator decides, so that gradient checkpointing works as usual. On a CPU, where its draws take as long as
    a decoder's products, it seeds numpy's SFC64, whose bits are compared 16 at a time: p is met to 1 / 131,072.
    """
    if like.device.type != "cpu":
        return torch.empty_like(like).bernoulli_(1 - p)
    words = np.random.SFC64(int(torch.randint(1 << 62, ()))).random_raw(-(-like.numel() // 4))
    kept = words.view(np.uint16)[: like.numel()] >= round(65536 * p)
    return torch.from_numpy(kept.view(np.uint8)).view(like.shape).to(like.dtype)
