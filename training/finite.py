"""Loss and gradient that are not finite, before weights or checkpoint have them; all processes stop together."""

from collections.abc import Iterable, Mapping
from math import isfinite

from torch import Tensor
from torch.nn.utils import get_total_norm

from cli.errors import UserError
from training.large_batch import largest_of_all

NEXT = "Checkpoints are from before it: once the cause is mended, the same command goes on from the last one."
TRY = "Lower objective.lr, or give precision=fp32."


def gradient_norm(parameters: Iterable[Tensor]) -> Tensor:
    """Euclidean norm of all gradients together, as `clip_grad_norm_` computes it. NaN or infinity: one of them is."""
    return get_total_norm([p.grad for p in parameters if p.grad is not None])


def refuse_step(figures: Mapping[str, Tensor], step: int, where: str = "") -> None:
    """Raise `UserError` in every process where a figure of this step is not finite in any.

    figures: {"loss": ..., "gradient norm": ...}, scalars; where: what was trained on, for the message.
    """
    numbers = {name: float(value.detach()) for name, value in figures.items()}
    finite = all(map(isfinite, numbers.values()))
    if largest_of_all(not finite, next(iter(figures.values())).device):
        what = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        whose = "another process" if finite else "this process"
        raise UserError(f"Step {step} is not finite in {whose} ({what}{where}). {TRY} {NEXT}")
