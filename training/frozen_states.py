"""Train a head on a frozen backbone (`backbone.frozen=true`): compute the states of all rows before the first step."""

from itertools import chain
from typing import Any

from rich.console import Console
from rich.progress import Progress

from cli.errors import UserError
from encoders.frozen.cached_encoder import CachedEncoder, compute_states
from encoders.frozen.state_cache import text_key
from poolers.shared.registry import pooler_class, pooler_names, reads_padding
from training.module import StepModule

Config = dict[str, Any]


def check_frozen(config: Config) -> None:
    """Refuse a frozen run without a head to train, and one of several processes."""
    name = config["pooler"]["name"]  # check_pooler has found it
    trained = [pooler for pooler in pooler_names() if pooler_class(pooler).needs_training]
    if name not in trained:
        raise UserError(
            f"backbone.frozen=true with pooler={name} leaves nothing to train: by its class {name} has no parameters. "
            f"Poolers that train: {', '.join(trained)}."
        )
    if config["pooler"].get("trainable") is False:
        raise UserError(
            "backbone.frozen=true with pooler.trainable=false leaves nothing to train. Leave one of them out; for an "
            "untrained score use evaluate.py run=null."
        )
    if pooler_class(name).consumes == "routers":
        raise UserError(
            f"backbone.frozen=true keeps hidden states alone, and pooler={name} reads routers. "
            "Set backbone.frozen=false."
        )
    if reads_padding(config["pooler"]):
        raise UserError(
            f"backbone.frozen=true keeps no states of padding, which pooler={name} reads with last_real=false or "
            "mask_padding=false. Leave one out."
        )
    if config["trainer"]["devices"] * config["trainer"]["num_nodes"] > 1:
        raise UserError(
            f"backbone.frozen=true trains in one process, but trainer.devices={config['trainer']['devices']}. "
            "Set trainer.devices=1: the head alone is quick."
        )


def fill_states(module: StepModule) -> Config:
    """Compute the states that the cache lacks of the rows of all steps; return facts for the manifest.

    Killed at any time, the same command goes on from the last whole shard.
    """
    encoder, work = module.encoder, module.objective.work
    assert isinstance(encoder, CachedEncoder)
    steps = (module.prepared(step)[2] for step in range(module.cfg["trainer"]["max_steps"]))
    rows = {text_key(r.ids, r.roles): r for r in chain(module.objective.held_out_rows(), chain.from_iterable(steps))}
    cache = encoder.cache
    missing = cache.missing(list(rows.values()))
    size = sum(map(len, missing)) * cache.bytes_per_token
    print(
        f"States of {len(rows):,} texts in {cache.folder}: {len(missing):,} to compute, {size / 2**30:.2f} GiB.",
        flush=True,
    )
    with Progress(console=Console(stderr=True), disable=module.cfg["trainer"]["progress"] is not True) as bar:
        line = bar.add_task("states", total=sum(map(len, missing)))
        compute_states(encoder, work.tokenizer, missing, work.plan.token_budget, lambda n: bar.update(line, advance=n))
    return {
        "identity": cache.identity,
        "texts": len(rows),
        "computed_texts": len(missing),
        "computed_bytes": size,
    }
