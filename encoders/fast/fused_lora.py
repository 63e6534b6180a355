"""LoRA layers that read the same input, computed as one function: PEFT's numbers in fewer passes over memory.

Of several adapters in a layer, the experts of a mixture, the sum is taken with a weight for each token and expert.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from encoders.fast.passes import draw_kept, kernels

TOGETHER = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))  # read one input, one after another
ADAPTER = "default"
Weights = Callable[[], Tensor]  # of the experts, as they are when a layer is called: [..., n], a row for each token


def fuse_lora(model: nn.Module, adapters: Sequence[str] = (ADAPTER,), weights: Weights | None = None) -> int:
    """Let the plain LoRA layers of `model` compute by `fused_lora`; return how many do. The others stay as they are.

    PEFT's modules keep their parameters, so that saving, merging and the optimiser see nothing of it. adapters: those
    that each layer has, in the order of `weights`.
    """
    fused, first = 0, adapters[0]
    for parent in model.modules():
        children: dict[str, Any] = {n: child for n, child in parent.named_children() if _is_plain(child, adapters)}
        groups = [[children.pop(n) for n in names if n in children] for names in TOGETHER]
        for group in [*groups, *([child] for child in children.values())]:
            fused += len(group)
            siblings: dict[Any, Siblings] = {}  # those of one rate of dropout and one scaling together
            for layer in group:
                key = _dropout(layer, first), layer.scaling[first]
                alike = siblings.setdefault(key, Siblings(adapters, weights))
                layer.forward = partial(alike.call, len(alike.layers))
                alike.layers.append(layer)
    return fused


def _is_plain(module: nn.Module, adapters: Sequence[str]) -> bool:
    """Return whether `module` is a linear layer with these adapters, LoRA as published and nothing else."""
    from peft.tuners.lora import Linear

    return (
        type(module) is Linear
        and type(module.base_layer) is nn.Linear
        and list(module.lora_A) == list(adapters)
        and not module.lora_variant
        and not any(module.lora_bias[name] for name in adapters)
        and not module.fan_in_fan_out
        and not module.base_layer.weight.requires_grad
    )


def _dropout(layer: Any, adapter: str) -> float:
    return getattr(layer.lora_dropout[adapter], "p", 0.0)  # nn.Identity where it is zero


class Siblings:
    """LoRA layers that a decoder calls one after another on the same tensor: q, k and v; or gate and up.

    The first that is called computes all; the others hand out what is theirs.
    """

    def __init__(self, adapters: Sequence[str] = (ADAPTER,), weights: Weights | None = None) -> None:
        self.adapters, self.weights = adapters, weights
        self.layers: list[Any] = []
        self.waiting: dict[int, tuple[Tensor, Tensor]] = {}  # of layer i: the input, its output

    def call(self, number: int, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Output [..., D_i] of layer `number` for x: [..., D]."""
        layer = self.layers[number]
        if args or kwargs or layer.merged or layer.disable_adapters:
            return type(layer).forward(layer, x, *args, **kwargs)
        waiting = self.waiting.pop(number, None)
        if waiting is not None and waiting[0] is x:
            return waiting[1]
        outputs = fused_lora(x, self.layers, self.adapters, self.weights() if self.weights else None)
        self.waiting = {i: (x, y) for i, y in enumerate(outputs) if i != number}
        return outputs[number]


def fused_lora(
    x: Tensor, layers: Sequence[Any], adapters: Sequence[str] = (ADAPTER,), weights: Tensor | None = None
) -> tuple[Tensor, ...]:
    """W x + b + scaling sum over experts i of a_i B_i A_i dropout(x), of each layer.

    One adapter without weights: Hu et al. 2021 (arXiv 2106.09685), equation 3, and dropout before A as in its
    section 4, as `peft.tuners.lora.Linear` computes it. Several: Kang et al. 2024 (arXiv 2406.12034), the layer of
    MiXSE; one mask of dropout serves all experts. x: [..., D]; weights: [..., n], the a_i of each token, or [n] of all.
    Returns [..., D_i] of each layer i, in the format of autocast, or of the weights. Layers share dropout rate and
    scaling.
    """
    kind, first = x.device.type, adapters[0]
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else layers[0].weight.dtype
    p = _dropout(layers[0], first) if layers[0].training else 0.0
    tensors: list[Tensor | None] = []
    for layer in layers:
        keep = draw_kept(x, p).view(-1, x.shape[-1]) if p else None
        down, up = ([part[name].weight for name in adapters] for part in (layer.lora_A, layer.lora_B))
        stacked = (down[0], up[0]) if len(adapters) == 1 else (torch.cat(down), torch.cat(up, dim=1))
        tensors += [keep, layer.weight, layer.bias, *stacked]
    return _FusedLora.apply(x, dtype, layers[0].scaling[first] / (1 - p), weights, *tensors)


class _FusedLora(torch.autograd.Function):
    """y_i = W_i x + b_i + s B_i (a * A_i (m_i x)), m_i a mask of zeros and ones; s holds the 1 / (1 - p) of dropout.

    A of several experts stand one above the other, B side by side; a repeats each expert's weight along its rank, and
    is left out where there are no weights. A mask is kept as bytes; a product with it has the other factor's format.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, dtype: torch.dtype, scale: float, weights: Tensor | None, *tensors: Tensor | None
    ) -> tuple[Tensor, ...]:
        with torch.autocast(x.device.type, enabled=False):
            flat = x.reshape(-1, x.shape[-1]).to(dtype)
            spread = None if weights is None else weights.reshape(-1, weights.shape[-1]).to(dtype)
            saved: list[Tensor | None] = [flat, spread]
            outputs = []
            for keep, *of_layer in _by_layer(tensors):
                w, b, lora_a, lora_b = (t if t is None else t.to(dtype) for t in of_layer)
                assert w is not None and lora_a is not None and lora_b is not None  # noqa: PT018
                y = flat @ w.T if b is None else torch.addmm(b, flat, w.T)
                z = _masked(flat, keep) @ lora_a.T
                outputs.append(y.addmm_(_weighted(z, spread), lora_b.T, alpha=scale).view(*x.shape[:-1], -1))
                saved += [keep, w, lora_a, lora_b, z]
        ctx.save_for_backward(*saved)
        ctx.input, ctx.adapter, ctx.scale = (x.dtype, x.shape), tensors[3].dtype, scale  # type: ignore[union-attr]
        ctx.weights = None if weights is None else (weights.dtype, weights.shape)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """With h_i = s g_i B_i: dB_i = s g_i^T (a z_i); dA_i = (a h_i)^T (m_i x); da = sum over i and rank of h_i z_i;
        dx = sum over i of g_i W_i + m_i (a h_i A_i). Frozen adapters get none."""
        flat, spread, *saved = ctx.saved_tensors
        of_x: Tensor | None = None
        of_weights: Tensor | None = None
        of_tensors: list[Tensor | None] = []
        with torch.autocast(flat.device.type, enabled=False):
            for i, (gradient, (keep, w, lora_a, lora_b, z)) in enumerate(zip(gradients, _by_layer(saved), strict=True)):
                g = gradient.reshape(-1, gradient.shape[-1])
                of_z = (g @ lora_b).mul_(ctx.scale)
                if ctx.needs_input_grad[3]:
                    part = (of_z * z).unflatten(1, (spread.shape[1], -1)).sum(dim=-1, dtype=ctx.weights[0])
                    of_weights = part if of_weights is None else of_weights.add_(part)
                of_z = _weighted(of_z, spread)
                of_a = of_b = None
                if ctx.needs_input_grad[7 + 5 * i]:
                    of_a = (of_z.T @ _masked(flat, keep)).to(ctx.adapter)
                    of_b = (g.T @ _weighted(z, spread)).to(ctx.adapter).mul_(ctx.scale)
                of_tensors += [None, None, None, of_a, of_b]
                if ctx.needs_input_grad[0]:
                    part = of_z @ lora_a
                    part = _masked(part, keep, part).addmm_(g, w)
                    of_x = part.to(ctx.input[0]) if of_x is None else of_x.add_(part)
        if of_weights is not None:
            of_weights = of_weights.view(ctx.weights[1])
        return (None if of_x is None else of_x.view(ctx.input[1]), None, None, of_weights, *of_tensors)


def _weighted(z: Tensor, weights: Tensor | None) -> Tensor:
    """z [N, n r] with the columns of expert i times its weight, of [N, n] or [1, n]; z itself without weights."""
    return z if weights is None else (z.unflatten(1, (weights.shape[1], -1)) * weights[:, :, None]).flatten(1)


def _by_layer(tensors: Sequence[Any]) -> list[Sequence[Any]]:
    """(mask, W, b, A, B), or what was saved, of each layer."""
    return [tensors[i : i + 5] for i in range(0, len(tensors), 5)]


def _masked(x: Tensor, mask: Tensor | None, out: Tensor | None = None) -> Tensor:
    """Zeros where `mask` drops an entry of x. out: memory that may be written, x itself or other."""
    if mask is None or not (_has_bits(x, mask) and _compiled()):
        return x if mask is None else x * mask
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype) if out is None else out
    bits, of_out = (t.view(-1).view(torch.uint16).numpy() for t in (x, out))
    kernels().mask(bits, mask.view(-1).numpy(), of_out)
    return out


def _compiled() -> bool:
    """Return whether a kernel is there, and no slower for being one thread's."""
    return torch.get_num_threads() == 1 and kernels() is not None


def _has_bits(x: Tensor, mask: Tensor) -> bool:
    """Return whether x holds 16-bit numbers in a CPU's memory, and `mask` a byte for each."""
    return mask.dtype is torch.uint8 and x.itemsize == 2 and x.device.type == "cpu" and not isinstance(x, FakeTensor)
