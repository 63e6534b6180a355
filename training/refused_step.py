"""A step that was refused, in a file beside its run, and what a look at it finds: not finite, or too large."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cli.errors import UserError
from records.atomic import replacing
from training.finite import RefusedStepError, gradient_norm
from training.loop import check_whole

REFUSED = "refused_step.pt"
SHOWN = 5  # names


@contextmanager
def keeping(folder: Path, state_of: Callable[[int], dict[str, Any]], writes: bool = True) -> Iterator[None]:
    """Write what decides a step that is refused inside the `with` to <folder>/refused_step.pt; name the replay.

    state_of: of the step's number; weights of no step have moved since. writes: False in all processes but one.
    """
    try:
        yield
    except RefusedStepError as error:
        if writes:
            with replacing(folder / REFUSED) as draft:
                torch.save({"step": error.step, **state_of(error.step)}, draft)
        raise UserError(f"{error} python train.py replay={folder} runs that step alone.") from error


def read_step(folder: Path) -> dict[str, Any]:
    """Return what `keeping` wrote. Raises `UserError` where there is nothing, or it is damaged."""
    path = folder / REFUSED
    if not path.is_file():
        raise UserError(
            f"replay={folder} has no {REFUSED}: none of its steps was refused. Name the folder of another run."
        )
    check_whole(path)
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def looked_at(
    root: nn.Module, trained: Mapping[str, nn.Parameter], backward: Callable[[], Tensor], of_what: str
) -> list[str]:
    """Run `backward`, which returns the loss; return lines on what is not finite, in the order it appears, and on the
    largest gradients. root: whose modules are watched; of_what: the step."""
    places: dict[str, None] = {}
    hooks = [part.register_forward_hook(_noting(name, places)) for name, part in root.named_modules() if name]
    loss = backward()
    for hook in hooks:
        hook.remove()
    gradients = {name: p.grad for name, p in trained.items() if p.grad is not None}
    bad = [name for name, gradient in gradients.items() if not gradient.isfinite().all()]
    sizes = {name: gradient.norm().item() for name, gradient in gradients.items()}
    largest = [f"{name} {sizes[name]:.3g}" for name in sorted(sizes, key=lambda name: -sizes[name])[:SHOWN]]
    return [
        f"{of_what}; loss {loss.item():.6g}, gradient norm {gradient_norm(trained.values()).item():.6g}.",
        f"Weights before it that are not finite: {_some([n for n, p in trained.items() if not p.isfinite().all()])}.",
        f"Outputs of modules that are not finite, the first ones first: {_some(list(places))}.",
        f"Gradients that are not finite: {_some(bad)}.",
        *([] if bad else [f"Largest gradients: {', '.join(largest)}."]),
    ]


def _noting(name: str, places: dict[str, None]) -> Any:
    def note(_part: nn.Module, _inputs: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, Tensor) and first.is_floating_point() and not first.isfinite().all():
            places[name] = None

    return note


def _some(names: list[str]) -> str:
    if not names:
        return "none"
    return ", ".join(names[:SHOWN]) + (f", ... ({len(names)} in all)" if len(names) > SHOWN else "")
