"""Numbers not finite and losses above a limit, before weights or checkpoint have them; all processes stop together."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf, isfinite
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from cli.errors import UserError
from training.large_batch import largest_of_all

NEXT = "Checkpoints are from before it: once the cause is mended, the same command goes on from the last one."
TRY = "Lower objective.lr, or give precision=fp32."


def gradient_norm(parameters: Iterable[Tensor]) -> Tensor:
    """Euclidean norm of all gradients together, as `clip_grad_norm_` computes it. NaN or infinity: one of them is."""
    return get_total_norm([p.grad for p in parameters if p.grad is not None])


def refuse_step(figures: Mapping[str, Tensor], step: int, limit: float | None = None, where: str = "") -> None:
    """Raise `UserError` in every process where a figure of this step is not finite in any, or the loss too high.

    figures: {"loss": ..., "gradient norm": ...}, scalars; limit: the largest loss, the same in all processes; where:
    what was trained on, for the message.
    """
    device = next(iter(figures.values())).device
    values = torch.stack([value.detach().float().to(device) for value in figures.values()])
    numbers = dict(zip(figures, values.tolist(), strict=True))
    bad = [name for name, value in numbers.items() if not isfinite(value)]
    if not bad and limit is not None and numbers["loss"] > limit:
        bad = ["loss"]
    if not largest_of_all(bool(bad), device):
        return
    what = f"{bad[0]} is {numbers[bad[0]]}" if bad else "loss or gradient norm of another process is not finite"
    what += f", above trainer.loss_limit={limit:g}," if bad and isfinite(numbers[bad[0]]) else ""
    rest = [f"{name} {value:.4g}" for name, value in numbers.items() if name not in bad[:1]]
    details = "; ".join([part for part in (where, ", ".join(rest)) if part])
    raise UserError(f"The {what} at step {step} ({details}). {TRY} {NEXT}")


def refuse_state(named: Iterable[tuple[str, Tensor]], optimizer: Any, step: int) -> None:
    """Raise `UserError` in every process where a trained weight or a moment is not finite after step `step`.

    named: the trained parameters. The optimiser's own numbers count too: an infinite moment stops its weight for ever.
    """
    tensors = [*named, *_moments(optimizer.state.values())]
    name = first_not_finite(tensors)
    if largest_of_all(bool(name), tensors[0][1].device):
        raise UserError(f"Step {step} left {name or 'a number of another process'} not finite. {TRY} {NEXT}")


def first_not_finite(named: Iterable[tuple[str, Any]]) -> str:
    """The name of the first tensor that holds NaN or infinity; "" where all numbers are finite."""
    tensors = [(name, tensor.detach()) for name, tensor in named if isinstance(tensor, Tensor) and tensor.numel()]
    if not tensors or get_total_norm([t for _, t in tensors], norm_type=inf).isfinite():
        return ""
    return next(name for name, tensor in tensors if not tensor.isfinite().all())


def _moments(states: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """AdamW's running means of each weight's gradient and of its square; `step` is a count."""
    for state in states:
        yield from ((f"AdamW's {name}", value) for name, value in state.items() if name != "step")
