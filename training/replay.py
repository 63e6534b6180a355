"""A step that a run refused for a number that is not finite: kept, and run again by `python train.py replay=<run>`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cli.errors import UserError
from records.atomic import replacing
from training.finite import gradient_norm
from training.frozen_states import fill_states
from training.loop import check_whole
from training.module import StepModule

REFUSED = "refused_step.pt"
SHOWN = 5  # names


def keep_step(folder: Path, module: StepModule, step: int) -> None:
    """Write what decides step `step` of a run, whose weights are those before it, to <folder>/refused_step.pt."""
    state = {
        "step": step,
        "config": module.cfg,
        "examples": _examples(module, step),
        "trained": {name: p.detach().cpu() for name, p in module.trained().items()},
        "back_off": module.objective.work.back_off,
    }
    with replacing(folder / REFUSED) as draft:
        torch.save(state, draft)


def read_step(folder: Path) -> dict[str, Any]:
    """Return what `keep_step` wrote. Raises `UserError` where there is nothing, or it is damaged."""
    path = folder / REFUSED
    if not path.is_file():
        raise UserError(
            f"replay={folder} has no {REFUSED}: none of its steps was refused. Name the folder of another run."
        )
    check_whole(path)
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def replay(module: StepModule, state: dict[str, Any]) -> list[str]:
    """Run the step, forward and backward and no further; return lines on what is not finite, in the order it appears.

    module: of the step's configuration. Raises `UserError` where the data are no longer those of the step.
    """
    step, trained = state["step"], module.trained()
    if _examples(module, step) != state["examples"] or trained.keys() != state["trained"].keys():
        raise UserError("The examples of the step are others now: data or code have changed since. Put them back.")
    with torch.no_grad():
        for name, p in trained.items():
            p.copy_(state["trained"][name])
    module.objective.work.back_off = state["back_off"]
    if module.cfg["backbone"]["frozen"]:
        fill_states(module)
    _, layout, rows = module.prepared(step)
    places: dict[str, None] = {}
    hooks = [part.register_forward_hook(_noting(name, places)) for name, part in module.encoder.named_modules() if name]
    loss = module.objective.backward(layout, rows, step)
    for hook in hooks:
        hook.remove()
    bad = [name for name, p in trained.items() if p.grad is not None and not p.grad.isfinite().all()]
    figures = f"loss {loss.item():.6g}, gradient norm {gradient_norm(trained.values()).item():.6g}"
    return [
        f"Step {step}: {len(state['examples'])} examples, {sum(map(len, rows))} tokens; {figures}.",
        f"Weights before it that are not finite: {_some([n for n, p in trained.items() if not p.isfinite().all()])}.",
        f"Outputs of modules, the first ones first: {_some(list(places))}.",
        f"Gradients: {_some(bad)}.",
        "Examples: " + "; ".join(repr(str(example["query"])[:60]) for example in state["examples"][:SHOWN]) + ".",
    ]


def _examples(module: StepModule, step: int) -> list[dict[str, Any]]:
    return [asdict(module.objective.examples[i]) for i in module.order.batch(step)]


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
