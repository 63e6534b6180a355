"""The facts of a run's manifest, before the first step and after the last, and their words on the screen."""

from typing import Any

import torch

from cli.compose import flat
from cli.errors import UserError
from corpora.mix import facts
from corpora.triples import Triple, described
from encoders.identity import base_fingerprints, instruction_sets
from encoders.jit_layer import elementwise
from encoders.precision import Precision
from records.lineage import OTHER_RUNS
from records.manifest import BASE, code, environment, peak_memory_bytes, stream_seeds
from records.run_folder import RunFolder
from training.cost import parameters, training_flops
from training.module import StepModule

Config = dict[str, Any]
SAME = {"data.sha256": "training data", **BASE}
ABSENT = "absent"
MAY_CHANGE = ("code", "versions", "machine", "threads", "kernel", "elementwise", "device", "precision", "dtypes")


def opening_manifest(config: Config, module: StepModule, triples: list[Triple], precision: Precision) -> Config:
    """Return the facts that are known before the first step."""
    data = described(triples)
    data[module.objective.unit] = data.pop("triples")
    data["trained_on"] = len(module.objective.examples)
    if "mix" in config["data"]:
        data["of_source"] = facts(config["data"], triples, list(module.objective.examples))
    encoder, device = module.encoder, next(module.encoder.parameters()).device
    return {
        "study": config["study"],
        "pooler": config["pooler"]["name"],
        "attn": config["attn"]["name"],
        "seed": config["seed"],
        "status": "running",
        "config": config,
        "data": data,
        **base_fingerprints(config["model"]),
        **({"lineage": encoder.lineage} if encoder.lineage else {}),
        **encoder.start,
        "precision": precision.name,
        "dtypes": {
            "weights": str(precision.weights).removeprefix("torch."),
            "compute": str(precision.compute).removeprefix("torch."),
            "head": "float32",
        },
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "kernel": encoder.backbone.config._attn_implementation,
        "elementwise": elementwise(encoder.backbone),
        "parameters": parameters(encoder),
        "seeds": stream_seeds(config["seed"]),
        "threads": torch.get_num_threads(),
        **environment(instruction_sets=instruction_sets(encoder.backbone)),
        "code": code(),
    }


def continued(manifest: Config, interrupted: Config) -> Config:
    """The opening manifest of a run that goes on after an interruption.

    Raises `UserError` where data or base are other ones. Code, versions, machine and threads that have changed are
    written down as "before -> now", so that the control rule sees a run of two halves for what it is.
    """
    check_same(manifest, interrupted, "this run was interrupted", "Put it back, or delete the run folder.")
    for key, fact in OTHER_RUNS.items():
        if manifest.get(fact) != interrupted.get(fact):
            raise UserError(f"The runs of {key}= changed since this run was interrupted. Delete the run folder.")
    return {**manifest, **{key: _both(interrupted.get(key), manifest[key]) for key in MAY_CHANGE}}


def check_same(now: Config, before: Config, when: str, remedy: str) -> None:
    """Refuse data or a base other than those that the manifest `before` states.

    now: the facts of `SAME` as they are, nested as in a manifest. when, remedy: the end of the message's sentences.
    """
    current, stated = flat(now), flat(before)
    for key, what in SAME.items():
        if current.get(key) != stated.get(key):
            raise UserError(f"The {what} changed since {when} ({key}). {remedy}")


def _both(before: Any, now: Any) -> Any:
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [*now, *(key for key in before if key not in now)]
        return {key: _both(before.get(key, ABSENT), now.get(key, ABSENT)) for key in keys}
    return now if before == now else f"{before} -> {now}"


def announcement(folder: RunFolder, module: StepModule, manifest: Config) -> str:
    """Return what is about to be trained, for the screen."""
    trainer, objective, sizes = module.cfg["trainer"], module.objective, manifest["parameters"]
    return (
        f"{folder.path}: {trainer['max_steps']} steps of {trainer['global_batch_size']} {objective.unit} from "
        f"{len(objective.examples):,}; {sizes['adapter']:,} adapter and {sizes['head']:,} head parameters train."
    )


def step_facts(module: StepModule) -> Config:
    """Return the facts of the steps. Tokens, FLOPs and seconds are those of all attempts together."""
    return {
        "batch_order_sha256": module.batch_order_sha256,
        "steps": module.cfg["trainer"]["max_steps"],
        "tokens": module.tokens,
        "flops": _counted(module),
        "seconds": round(module.seconds, 2),
        "tokens_per_second": round(module.tokens / module.seconds, 1) if module.seconds else None,
        "peak_memory_bytes": peak_memory(next(module.encoder.parameters()).device),
        "loss": sum(module.recent_losses) / len(module.recent_losses) if module.recent_losses else None,
    }


def _counted(module: StepModule) -> int | None:
    """FLOPs of the steps; null where counting fails: what was trained is worth more than its count."""
    try:
        return round(training_flops(module.cfg).of(module.tokens_run, module.tokens_spared)) if module.tokens_run else 0
    except Exception:  # an operator without a shape-only form, no memory for the probes, ...
        return None


def peak_memory(device: torch.device) -> int:
    """Most memory that training held: the GPU's tensors, else this process with Python and libraries."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_memory_bytes()
