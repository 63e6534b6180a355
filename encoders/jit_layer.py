"""Decoder layers whose element-wise passes numba compiles (encoders/fast/jit_kernels.py): each reads and writes once.

Products stay torch's. Taken by one thread of a CPU, under autocast to bf16 with a float32 residual stream, for texts in
one row: as the runs of a study are, side by side. With more threads torch shares its passes out; a kernel does not.
"""

from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from encoders.attention.pattern import earlier
from encoders.attention.switch import parts
from encoders.attention.unpadded import UNPADDED, Group, Segments
from encoders.fast.passes import kernels
from encoders.mixse import SUBLAYER

FAMILIES = ("llama", "mistral", "qwen2")  # whose layer is h + attention(norm(h)), then h + mlp(norm(h)), and no more
HALF = torch.bfloat16
Gradients = tuple[Tensor | None, ...]


def use_kernels(backbone: Any, compute: torch.dtype) -> int:
    """Let the layers of `backbone` compute by the kernels where these apply; return how many do.

    Each falls back on the family's own code for a call that is not as the module's docstring says.
    """
    layers, _ = parts(backbone)
    known = backbone.config.model_type in FAMILIES and backbone.config._attn_implementation == UNPADDED
    fits = known and compute is HALF and next(backbone.parameters()).device.type == "cpu"
    if not fits or torch.get_num_threads() > 1 or kernels() is None:
        return 0
    fast: list[Any] = [layer for layer in layers if _is_plain(layer)]
    for layer in fast:
        layer.forward = partial(_layer, layer)
        layer.self_attn.forward = partial(_attention, layer.self_attn)
    return len(fast)


def elementwise(backbone: Any) -> str:
    """Return what computes all that is no product, for manifests and caches: numba and its version, or torch."""
    layers: Any = parts(backbone)[0]
    forwards = (getattr(layer.forward, "func", None) for layer in layers)
    return f"numba {version('numba')}" if _layer in forwards else "torch"


def _is_plain(layer: Any) -> bool:
    act, first = layer.mlp.act_fn, layer.input_layernorm
    silu = isinstance(act, nn.SiLU) or type(act).__name__ == "SiLUActivation"
    return silu and first.weight.dtype is torch.float32 and layer.self_attn.head_dim % 2 == 0


def _layer(layer: Any, hidden_states: Tensor, *args: Any, **how: Any) -> Tensor:
    """[1, N, D] float32 of the residual stream after a layer; hidden_states: before it."""
    autocast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is HALF
    drops = layer.training and layer.self_attn.attention_dropout
    first, second, mlp = layer.input_layernorm, layer.post_attention_layernorm, layer.mlp
    trains = torch.is_grad_enabled() and first.weight.requires_grad  # the kernels give a norm's weight no gradient
    usual = hidden_states.dtype is not torch.float32 or isinstance(hidden_states, FakeTensor)
    if usual or trains or drops or not autocast or args or how.get("segments") is None:
        result: Tensor = type(layer).forward(layer, hidden_states, *args, **how)
        return result
    h, x = _Norm.apply(hidden_states, first.weight, first.variance_epsilon)
    h = _Add.apply(h, layer.self_attn(hidden_states=x, **how)[0])
    h, x = _Norm.apply(h, second.weight, second.variance_epsilon)
    if sublayer := getattr(mlp, SUBLAYER, None):  # its hook is gone around
        sublayer(x)
    return _Add.apply(h, mlp.down_proj(_Gate.apply(mlp.gate_proj(x), mlp.up_proj(x))))


def _attention(module: Any, hidden_states: Tensor, *args: Any, **how: Any) -> tuple[Tensor, None]:
    """([1, N, H d], None) of the attention module; hidden_states: bf16 from `_layer`, else the family's own code."""
    if hidden_states.dtype is not HALF or args or how.get("segments") is None:
        return type(module).forward(module, hidden_states, *args, **how)
    segments: Segments = how["segments"]
    q, k, v = (project(hidden_states)[0] for project in (module.q_proj, module.k_proj, module.v_proj))
    groups = segments.groups(getattr(module, "sees", earlier))
    angles = tuple(angle[0].float() for angle in how["position_embeddings"])
    q, k, v = (x.view(len(x), -1, module.head_dim) for x in (q, k, v))
    out = _Attention.apply(q, k, v, *angles, module.scaling, groups)
    return module.o_proj(out.view(1, len(q), -1)), None


def _flat(x: Tensor, *shape: int) -> Any:
    """Return what a kernel reads of x: numbers of float32, bits of bf16; all rows in one dimension without `shape`."""
    x = x.detach().contiguous()
    return (x.view(torch.uint16) if x.dtype is HALF else x).numpy().reshape(shape or (-1, x.shape[-1]))


def _room(x: Tensor) -> Tensor:
    """Memory for a kernel's result, row by row whatever the strides of x are."""
    return torch.empty(x.shape, dtype=x.dtype)


class _Norm(torch.autograd.Function):
    """(h, w h / sqrt(mean(h^2) + eps) in bf16): both readers of h, whose gradients are then summed as one is made."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        out, inverse = h.new_empty(h.shape, dtype=HALF), h.new_empty(h.shape[:-1].numel())
        kernels().norm(_flat(h), weight.detach().numpy(), np.float32(eps), _flat(out), inverse.numpy())
        ctx.save_for_backward(h, weight, inverse)
        return h.view_as(h), out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        h, weight, inverse = ctx.saved_tensors
        of_h = _room(h)
        of_stream, of_out = (_flat(g) for g in gradients)
        kernels().norm_backward(of_out, of_stream, _flat(h), weight.numpy(), inverse.numpy(), _flat(of_h))
        return of_h, None, None


class _Add(torch.autograd.Function):
    """h + a of float32 and bf16."""

    @staticmethod
    def forward(_ctx: Any, h: Tensor, a: Tensor) -> Tensor:
        out = _room(h)
        kernels().add(_flat(h), _flat(a), _flat(out))
        return out

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Gradients:
        return gradients[0], gradients[0].to(HALF)


class _Gate(torch.autograd.Function):
    """silu(g) u (Shazeer 2020, arXiv 2002.05202)."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, u: Tensor) -> Tensor:
        ctx.save_for_backward(g, u)
        out = _room(g)
        kernels().gate(_flat(g), _flat(u), _flat(out))
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        g, u = ctx.saved_tensors
        of_g, of_u = _room(g), _room(u)
        kernels().gate_backward(_flat(gradients[0]), _flat(g), _flat(u), _flat(of_g), _flat(of_u))
        return of_g, of_u


class _Attention(torch.autograd.Function):
    """softmax(scaling R q (R k)^T) v inside each text, as `encoders/attention/unpadded.py`; R: rotary embedding.

    query: [N, H, d]; key, value: [N, S, d]; cos, sin: [N, d]; returns [N, H, d]. The formulas stand there.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        query, key, value, cos, sin, scaling, groups = inputs
        q, k = _rotated(query, cos, sin, 1, scaling), _rotated(key, cos, sin, 1, 1)
        v, shared, kept = value.contiguous(), key.shape[1], []
        out = torch.empty_like(q)
        for group in groups:
            weights = _block(group, q, shared) @ _block(group, k, shared).transpose(2, 3)
            bias = torch.zeros(1, 1, 1) if group.bias is None else group.bias[:, 0]
            bias = bias.expand(-1, group.width, group.width).contiguous()
            shape = (shared, group.texts, -1, group.width, group.width)
            kernels().softmax(_flat(weights, *shape), bias.numpy(), np.empty(group.width, np.float32))
            _put(group, out, weights @ _block(group, v, shared))
            kept.append(weights)
        ctx.save_for_backward(q, k, v, cos, sin, out, *kept)
        ctx.scaling, ctx.groups = scaling, groups
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        q, k, v, cos, sin, out, *kept = ctx.saved_tensors
        g, shared, sums = gradients[0].contiguous(), k.shape[1], torch.empty(out.shape[:2])
        kernels().row_products(_flat(g), _flat(out), sums.view(-1).numpy())
        of_q, of_k, of_v = (torch.empty_like(x) for x in (q, k, v))
        for group, weights in zip(ctx.groups, kept, strict=True):
            of_out = _block(group, g, shared)
            _put(group, of_v, weights.transpose(2, 3) @ of_out)
            of_scores = of_out @ _block(group, v, shared).transpose(2, 3)
            row_sums = sums[group.places].view(group.texts, group.width, shared, -1).permute(2, 0, 3, 1)
            kernels().softmax_backward(_flat(of_scores), _flat(weights), _flat(row_sums, -1))
            _put(group, of_q, of_scores @ _block(group, k, shared))
            _put(group, of_k, of_scores.transpose(2, 3) @ _block(group, q, shared))
        return _rotated(of_q, cos, sin, -1, ctx.scaling), _rotated(of_k, cos, sin, -1, 1), of_v, *[None] * 4


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, sign: int, scale: float) -> Tensor:
    out = torch.empty(x.shape, dtype=HALF)
    kernels().rotate(
        _flat(x, *x.shape), _flat(cos), _flat(sin), np.float32(sign), np.float32(scale), _flat(out, *x.shape)
    )
    return out


def _block(group: Group, x: Tensor, shared: int) -> Tensor:
    """[s, b, g t, d] of x: [N, H, d], the g = H / s heads of a key head together; zeros at padding."""
    shape = (shared, group.texts, x.shape[1] // shared, group.width, x.shape[2])
    out = torch.empty(shape, dtype=HALF)
    kernels().gather(_flat(x, *x.shape), group.real_places.numpy(), _flat(out, *shape))
    return out.flatten(2, 3)


def _put(group: Group, out: Tensor, block: Tensor) -> None:
    """Write a block to its tokens in out: [N, H, d]."""
    shape = (len(block), group.texts, -1, group.width, block.shape[-1])
    kernels().scatter(_flat(block, *shape), group.real_places.numpy(), _flat(out, *out.shape))
