"""Fewer passes over memory: masks of dropout that are cheap to draw, torch's own norm, kernels that numba compiles."""

from functools import cache, partial
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional as F


def draw_kept(like: Tensor, p: float) -> Tensor:
    """Return uint8 of the shape of `like`: one with probability 1 - p, else zero.

    On a CPU the bytes come from numpy's SFC64, its seed from torch's generator, so that
    `torch.manual_seed` and gradient checkpointing work as usual. A byte below 256 p drops its entry; the byte on the
    edge does so with the probability that is left, so that p is met to the last bit of a float64.
    """
    if like.device.type != "cpu" or isinstance(like, FakeTensor):  # the latter has shapes alone, to count with
        return torch.empty(like.shape, dtype=torch.uint8, device=like.device).bernoulli_(1 - p)
    draw = np.random.Generator(np.random.SFC64(int(torch.randint(1 << 62, ()))))
    count = like.numel()
    words = draw.integers(0, 2**64 - 1, size=-(-count // 8), dtype=np.uint64, endpoint=True)
    numbers = words.view(np.uint8)[:count]
    edge = int(256 * p)
    kept = (numbers >= edge).view(np.uint8)
    undecided = np.flatnonzero(numbers == edge)
    kept[undecided] = draw.random(len(undecided)) >= 256 * p - edge
    return torch.from_numpy(kept).view(like.shape)


class _Dropped(torch.autograd.Function):
    """x m / (1 - p) for a mask m of zeros and ones, of which a byte each is kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Tensor, p: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.p = p
        return x * (kept.to(x.dtype) / (1 - p))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (kept,) = ctx.saved_tensors
        return gradients[0] * (kept.to(gradients[0].dtype) / (1 - ctx.p)), None, None


class QuickDropout(nn.Module):
    """Inverted dropout as `torch.nn.Dropout`, with the masks of `draw_kept`."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Zero each entry with probability p and scale the rest by 1 / (1 - p); x as it is outside training."""
        if not self.training or self.p == 0:
            return x
        return cast(Tensor, _Dropped.apply(x, draw_kept(x, self.p), self.p))


def use_quick_dropout(model: nn.Module) -> None:
    """Replace the `nn.Dropout` of every LoRA layer in `model`."""
    for module in model.modules():
        dropouts = getattr(module, "lora_dropout", None)
        if isinstance(dropouts, nn.ModuleDict):
            for name, dropout in dropouts.items():
                if isinstance(dropout, nn.Dropout):
                    dropouts[name] = QuickDropout(dropout.p)


@cache
def kernels() -> Any:
    """The compiled kernels; None without numba, or where it may write its cache nowhere (NUMBA_CACHE_DIR names one).

    numba keeps them next to the source or in the user's cache, so that one process compiles and later ones read.
    """
    if find_spec("numba") is None:
        return None
    try:
        from encoders.fast import jit_kernels
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return None
    return jit_kernels


ROWS = 64  # of the trial


@torch.no_grad()
def spare_norms(backbone: nn.Module, compute: torch.dtype = torch.float32) -> int:
    """Let RMS norms of `backbone` compute by torch's own function; return how many do. Gradients: equal up to rounding.

    Each module is first tried on random numbers, without autocast and under that to `compute`, in each number format
    that may come in. One whose output is not equal bit by bit stays as it is.
    """
    modules = [module for module in backbone.modules() if _is_norm(module) and _same(module, compute)]
    for module in modules:
        module.forward = partial(_rms_norm, module)
    return len(modules)


def _is_norm(module: Any) -> bool:
    weight = getattr(module, "weight", None)  # with weights of 16 bits the families round at other places
    fits = isinstance(weight, Tensor) and weight.dim() == 1 and weight.dtype is torch.float32
    return fits and hasattr(module, "variance_epsilon")


def _rms_norm(module: Any, x: Tensor) -> Tensor:
    """w x / sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019, arXiv 1910.07467)."""
    if x.dtype is not module.weight.dtype:  # torch's function would round at other places than the family's code
        return type(module).forward(module, x)
    return F.rms_norm(x, module.weight.shape, module.weight, module.variance_epsilon)


def _same(module: Any, compute: torch.dtype) -> bool:
    """Return whether `_rms_norm` gives what `module` gives, bit by bit and in the same format."""
    weight = module.weight
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(1, ROWS, weight.shape[-1], generator=draw).to(weight.device)
    trials = [(weight.dtype, False)]  # under autocast an input has the format of the residual stream, or of a product
    if compute is not torch.float32:
        trials += [(kind, True) for kind in (torch.float32, weight.dtype, compute)]
    for kind, enabled in dict.fromkeys(trials):
        with torch.autocast(weight.device.type, compute, enabled=enabled):
            usual, other = module(x.to(kind)), _rms_norm(module, x.to(kind))
        if usual.dtype is not other.dtype or not torch.equal(usual, other):
            return False
    return True
