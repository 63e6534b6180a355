"""Modules of a decoder that run in fewer passes over memory, with the same numbers bit by bit."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROWS = 64  # of the trial
Quick = Callable[[Any, Tensor], Tensor]  # of a module and its input


def spare_norms(backbone: nn.Module, compute: torch.dtype = torch.float32) -> int:
    """Let RMS norms of `backbone` compute by torch's own function; return how many do. Gradients: equal up to rounding.

    Each module is first tried on random numbers, without autocast and under that to `compute`, in each number format
    that may come in. One whose output is not equal bit by bit stays as it is.
    """
    return _replace(backbone, _is_norm, _rms_norm, compute)


def spare_gates(backbone: nn.Module, compute: torch.dtype = torch.float32) -> int:
    """The same for gated MLPs, whose steps between need no memory of their own. For inference: no gradients."""
    return _replace(backbone, _is_gated, _silu_gate, compute)


@torch.no_grad()
def _replace(backbone: nn.Module, fits: Callable[[Any], bool], quick: Quick, compute: torch.dtype) -> int:
    modules = [m for m in backbone.modules() if fits(m) and _same(m, partial(quick, m), compute)]
    for module in modules:
        module.forward = partial(quick, module)
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


def _is_gated(module: Any) -> bool:
    return all(isinstance(getattr(module, f"{name}_proj", None), nn.Linear) for name in ("gate", "up", "down"))


def _silu_gate(module: Any, x: Tensor) -> Tensor:
    """down(silu(gate(x)) * up(x)) (Shazeer 2020, arXiv 2002.05202)."""
    return module.down_proj(F.silu(module.gate_proj(x), inplace=True).mul_(module.up_proj(x)))


def _same(module: nn.Module, quick: Callable[[Tensor], Tensor], compute: torch.dtype) -> bool:
    """Return whether `quick` gives what `module` gives, bit by bit and in the same format."""
    weight = next(module.parameters())
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(1, ROWS, weight.shape[-1], generator=draw).to(weight.device)
    trials = [(weight.dtype, False)]  # under autocast an input has the format of the residual stream, or of a product
    if compute is not torch.float32:
        trials += [(kind, True) for kind in (torch.float32, weight.dtype, compute)]
    for kind, enabled in dict.fromkeys(trials):
        with torch.autocast(weight.device.type, compute, enabled=enabled):
            usual, other = module(x.to(kind)), quick(x.to(kind))
        if usual.dtype is not other.dtype or not torch.equal(usual, other):
            return False
    return True
