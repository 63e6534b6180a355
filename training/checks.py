"""Refuse a run that cannot be, before anything is loaded, and a finished one that is not what the command asks for."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning_fabric.plugins.environments import SLURMEnvironment, TorchElasticEnvironment

from cli.compose import flat, options
from cli.errors import UserError
from cli.limits import DATA, DATA_WORDS, Limit, check_dims, check_limits, real
from corpora.files import data_files, rows
from corpora.mix import check_mix
from corpora.triples import Triple, TripleMaker, fingerprint
from encoders.adapter import is_mixture, mixing_of
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import refuse_unpadded
from encoders.identity import base_fingerprints
from encoders.limits import ENCODER, ENCODER_WORDS
from encoders.mixse import LEARNED, ROUTERS
from encoders.templates import TEXT_FIELD, template_of
from poolers.shared.registry import check_pooler, pooler_class, reads_padding, refuse_blind
from records.earlier_runs import OTHER_RUNS, other_runs
from records.manifest import BASE, different_keys, read_manifest
from training.batches import query_side
from training.objectives.objective import objective_class
from training.set_up import COMBINE, check_start

Config = dict[str, Any]
SAME = {"data.sha256": "training data", **BASE}
ABSENT = "absent"
TRIED = 8  # first steps, until one compares something
MAY_CHANGE = ("code", "versions", "machine", "threads", "kernel", "elementwise", "device", "precision", "dtypes")
LIMITS = {
    **ENCODER,
    "adapter.top_k": Limit(1, "all experts"),
    "adapter.balance": real(0),
    "adapter.lr": real(0, "objective.lr"),
    "backbone.state_limit": real(0),
    "trainer.max_steps": Limit(0, "one epoch of the data"),
    "trainer.global_batch_size": Limit(1),
    "trainer.chunk_size": Limit(1, "token_budget alone"),
    "trainer.checkpoint_every": Limit(0),
    "trainer.validate_every": Limit(0),
    "trainer.devices": Limit(1),
    "trainer.num_nodes": Limit(1),
    "trainer.threads": Limit(1, "one for each core"),
    "trainer.gradient_clip": real(0, "none"),
    "objective.warmup": real(0),
    "objective.decay_epochs": real(1e-6, "trainer.max_steps alone"),
    "objective.lr": real(0),
    "objective.head_lr": real(0, "objective.lr"),
    "objective.weight_decay": real(0),
    "lora.r": Limit(1),
    "lora.alpha": real(1e-6),
    "lora.dropout": real(0, below=1),
    "init.density": real(1e-6, largest=1),
    "data.validation": Limit(1),
    **DATA,
}
WORDS = {
    **ENCODER_WORDS,
    **DATA_WORDS,
    "adapter.router": ROUTERS,
    "adapter.trains": ("router", "experts"),
    "init.combine": COMBINE,
    "adapter.name": tuple(options("adapter")),
    "trainer.progress": (True, False, "lines"),
}


def check_sizes(config: Config) -> None:
    """Refuse numbers and words that are not allowed or do not fit together."""
    objective = objective_class(config["objective"]["name"])
    check_limits(config, {**LIMITS, **objective.limits}, {**WORDS, **objective.words})
    check_dims("evaluation.dims", config["evaluation"]["dims"])
    pattern_of(config["attn"])
    if "mix" in config["data"]:
        check_mix(config["data"])
    check_pooler(config["pooler"])
    refuse_blind(config["pooler"], config["attn"]["name"] == "causal")
    _check_mixture(config)
    fitted = config["pooler"].get("standardise") == "corpus"  # statistics are made without a step
    others = config["init"]["lora"] or config["adapter"].get("experts") or fitted
    _check_trainer(config, bool(others) or objective.scored_before)
    check_start(config)
    refuse_unpadded(config["model"]["attn_implementation"], reads_padding(config["pooler"]))
    objective.check(config)
    if config["backbone"]["frozen"]:
        check_frozen(config)


def _check_mixture(config: Config) -> None:
    """Refuse keys of adapter=mixse that do not fit one another."""
    if not is_mixture(config):
        return
    adapter, pooler = config["adapter"], config["pooler"]
    experts, router = adapter["experts"], adapter["router"]
    listed = isinstance(experts, list) and experts and all(isinstance(word, str) for word in experts)
    if not listed and (isinstance(experts, bool) or not isinstance(experts, int) or experts < 1):
        raise UserError(f"adapter.experts={experts} must be a list of finished runs, or how many experts are drawn.")
    mixing = mixing_of(adapter)
    head = pooler_class(pooler["name"]).needs_training and pooler.get("trainable") is not False
    fault = ""
    if config["backbone"]["frozen"] or config["init"]["lora"]:
        fault = "=mixse takes neither backbone.frozen=true nor init.lora. Leave them out."
    elif not listed and adapter["trains"] == "router":
        fault = f".trains=router with adapter.experts={experts}, which are drawn. Give adapter.trains=experts."
    elif (mixing.top_k or 1) > mixing.routed:
        fault = f".top_k={mixing.top_k} is more than the {mixing.routed} experts that are routed. Lower it."
    elif mixing.constant and mixing.top_k not in (None, mixing.routed):
        fault = f".router=uniform weighs all experts alike, not {mixing.top_k}. Give adapter.top_k=null."
    elif not (router in LEARNED or head or adapter["trains"] == "experts") and config["trainer"]["max_steps"] != 0:
        fault = f".router={router} and pooler={pooler['name']} train nothing. Give adapter.trains=experts."
    elif adapter["balance"] and config["trainer"]["gradient_checkpointing"]:
        fault = f".balance={adapter['balance']} cannot be recomputed. Give trainer.gradient_checkpointing=false."
    if fault:
        raise UserError(f"adapter{fault}")


def _check_trainer(config: Config, zero_steps: bool) -> None:
    t = config["trainer"]
    devices = t["devices"] * t["num_nodes"]
    slurm, elastic = SLURMEnvironment.detect(), TorchElasticEnvironment.detect()
    started = int(os.environ.get("WORLD_SIZE" if elastic else "SLURM_STEP_NUM_TASKS", devices))
    if (slurm or elastic) and started != devices:  # each would be a whole run on one GPU
        raise UserError(f"{started} processes were started. Give trainer.devices=<those of one machine>.")
    if t["num_nodes"] > 1 and not (slurm or elastic):
        raise UserError(f"trainer.num_nodes={t['num_nodes']}: let torchrun or SLURM start the processes.")
    if t["max_steps"] == 0 and not zero_steps:
        raise UserError("trainer.max_steps=0 trains nothing; for an untrained score use evaluate.py run=null.")
    if config["logging"]["wandb"] and not find_spec("wandb"):
        raise UserError("logging.wandb needs the package wandb. Install it: pip install wandb.")


def check_frozen(config: Config) -> None:
    """Refuse a frozen run without a head to train, one of several processes, and a head that reads more than states."""
    pooler, trainer = config["pooler"], config["trainer"]  # check_pooler has found it
    kind, fault = pooler_class(pooler["name"]), ""
    if not kind.needs_training or pooler.get("trainable") is False:
        fault = f"pooler={pooler['name']} leaves nothing to train"
    elif kind.consumes == "routers":
        fault = f"keeps hidden states alone, and pooler={pooler['name']} reads routers"
    elif reads_padding(pooler):
        fault = f"keeps no states of padding, which pooler={pooler['name']} reads"
    elif trainer["devices"] * trainer["num_nodes"] > 1:
        fault = "trains in one process: the head alone is quick"
    if fault:
        raise UserError(f"backbone.frozen=true: {fault}. Leave one of them out.")


def _unread(data: Config) -> list[str]:
    """The columns of the first record of a file of pairs that are not read."""
    if data.get("reader") != "corpora.files.triples":
        return []
    make, (_, row) = TripleMaker(data["columns"], ""), next(iter(rows(data_files(data["path"])[0])))
    make.check_keys(row)
    return [key for key in row if key not in make.reads]


def check_examples(config: Config, triples: Sequence[Triple]) -> None:
    """Refuse hard negatives of data without any, and pooler.query=instruction where all queries are bare text."""
    negatives, data = config["objective"].get("hard_negatives"), config["data"]
    if negatives and not any(t.negatives for t in triples):
        fault = f"objective.hard_negatives={negatives}, and no record of data={data['name']} has a negative"
        unread = f", for one of {', '.join(names)}" if (names := _unread(data)) else ""
        mend = f"Give data.columns.negative=<column>{unread}, mine them, or objective.hard_negatives=0."
        raise UserError(f"{fault}. {mend}")
    instruction, template = data.get("instruction"), template_of(config)
    bare = (template.form(query_side(triple, instruction, template)) == TEXT_FIELD for triple in triples)
    if config["pooler"].get("query") == "instruction" and all(bare):
        raise UserError("pooler.query=instruction, and no query has an instruction. Give data.instruction=<text>.")


def check_compared(module: Any) -> None:
    """Refuse steps none of which compares a query with another document than its own. module: a `StepModule`."""
    steps = range(min(TRIED, module.cfg["trainer"]["max_steps"]))
    if steps and not any(module.objective.compares(module.prepared(step)[1]) for step in steps):
        raise UserError("No query meets another document than its own. Give data with different positives or labels.")


def is_finished(folder: Path, config: dict[str, Any]) -> bool:
    """Tell whether `folder` holds the finished run of `config`. Raises `UserError` where it holds another one."""
    if not (folder / "manifest.json").exists():
        return False
    manifest = read_manifest(folder)
    if manifest["seed"] != config["seed"]:
        raise UserError(f"{folder} holds a run of seed {manifest['seed']}, copied or renamed. Move it away.")
    if differing := different_keys(manifest["config"], config):
        raise UserError(
            f"{folder} holds a run of another configuration ({'; '.join(differing[:4])}). "
            "Choose another study=<name>, name the key in the folder by axes=[<key>], or delete that folder."
        )
    return bool(manifest["status"] == "finished")


def refuse_changed(config: Config, folder: Path, examples: Sequence[Triple]) -> None:
    """Refuse a finished run whose data, base or stages have changed since: it is not what the command asks for."""
    finished, manifest = f"{folder} was finished", read_manifest(folder)
    if gone := [name for name in manifest["files"] if not (folder / name).is_file()]:
        raise UserError(f"{folder} is finished, but lacks {gone[0]}. Put it back, or delete that folder.")
    data = {"sha256": fingerprint(examples)}
    remedy = "Put back what was there, choose another study=<name>, or delete that folder to train it anew."
    check_same({"data": data, **base_fingerprints(config["model"])}, manifest, finished, remedy)
    for key, runs in other_runs(config).items():
        facts = manifest.get(OTHER_RUNS[key], [])
        if [run.adapter_sha256 for run in runs] != [fact["adapter_sha256"] for fact in facts]:
            raise UserError(f"The runs of {key}= changed since {finished}. {remedy}")


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
