"""The refused step of a run with an encoder, run again by `python train.py replay=<run>`."""

from dataclasses import asdict
from typing import Any

import torch

from cli.errors import UserError
from records.fingerprint import of_value
from training.frozen_states import fill_states
from training.module import StepModule
from training.refused_step import SHOWN, looked_at


def state_of(module: StepModule, step: int) -> dict[str, Any]:
    """Return what decides step `step` of a run whose weights are those before it."""
    return {
        "config": module.cfg,
        "examples": _examples(module, step),
        "rows": _rows(module, step),
        "trained": {name: p.detach().cpu() for name, p in module.trained().items()},
        "back_off": module.objective.work.back_off,
    }


def replay(module: StepModule, state: dict[str, Any]) -> list[str]:
    """Run the step, forward and backward and no further; return lines on what is wrong in it.

    module: of the step's configuration. Raises `UserError` where the data are no longer those of the step.
    """
    step, trained = state["step"], module.trained()
    kept, now = state["examples"], _examples(module, step)
    rows = state.get("rows") or _rows(module, step)  # older files have none
    if now != kept or _rows(module, step) != rows or trained.keys() != state["trained"].keys():
        raise UserError("The examples of the step are others now: data or code have changed since. Put them back.")
    with torch.no_grad():
        for name, p in trained.items():
            p.copy_(state["trained"][name])
    module.objective.work.back_off = state["back_off"]
    if module.cfg["backbone"]["frozen"]:
        fill_states(module)
    _, layout, rows = module.prepared(step)
    of_what = f"Step {step}: {len(state['examples'])} examples, {sum(map(len, rows))} tokens"
    lines = looked_at(module.encoder, trained, lambda: module.objective.backward(layout, rows, step), of_what)
    return [*lines, "Examples: " + "; ".join(repr(str(x["query"])[:60]) for x in state["examples"][:SHOWN]) + "."]


def _rows(module: StepModule, step: int) -> str:
    """Digest of the tokens that are run: an example of a long document names the document, not its window."""
    return of_value([[row.ids, row.roles] for row in module.prepared(step)[2]])


def _examples(module: StepModule, step: int) -> list[dict[str, Any]]:
    return [asdict(module.objective.examples[i]) for i in module.order.batch(step)]
