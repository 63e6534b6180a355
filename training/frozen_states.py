"""Train a head on a frozen backbone (`backbone.frozen=true`): compute the states of all rows before the first step."""

import shutil
import time
from itertools import chain
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cli.errors import UserError
from encoders.frozen.cached_encoder import CachedEncoder, compute_states
from encoders.frozen.state_cache import text_key
from poolers.shared.registry import pooler_class, pooler_names, reads_padding
from training.module import StepModule

Config = dict[str, Any]
GIB = 2**30


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
    """Compute the states that the cache lacks of the rows of all steps, after printing how large they will be.

    Returns facts for the manifest. Raises `UserError` where the disk lacks the room. Killed at any time, the same
    command goes on from the last whole shard.
    """
    encoder, tokenizer = module.encoder, module.objective.work.tokenizer
    assert isinstance(encoder, CachedEncoder)
    steps = (module.prepared(step)[2] for step in range(module.cfg["trainer"]["max_steps"]))
    rows = {text_key(r.ids, r.roles): r for r in chain(module.objective.held_out_rows(), chain.from_iterable(steps))}
    cache, texts = encoder.cache, len(rows)
    missing = cache.missing(list(rows.values()))
    tokens = sum(map(len, missing))
    size, free = tokens * cache.bytes_per_token, shutil.disk_usage(cache.folder).free
    new = f"{texts - len(missing):,} there, {len(missing):,} ({tokens:,} tokens) to compute, {size / GIB:.2f} GiB"
    what = f"States of {texts:,} texts ({cache.layers} layers x {cache.width}, {cache.dtype}) in {cache.folder}"
    print(f"{what}: {new if missing else 'all there'}.", flush=True)
    if size > free:
        raise UserError(
            f"The states need {size / GIB:.2f} GiB and {cache.folder} has {free / GIB:.2f} GiB free. Free some disk, "
            "give cache_dir=<folder on a larger disk>, or lower trainer.max_steps or max_length."
        )
    start = time.perf_counter()
    shown = module.cfg["trainer"]["progress"] is True and tokens > 0
    counts = TextColumn("{task.completed:,} of {task.total:,} tokens")
    columns = (TextColumn("{task.description}"), BarColumn(), counts, TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        line = bar.add_task("states", total=tokens)
        budget = module.cfg["token_budget"]
        compute_states(encoder, tokenizer, missing, budget, lambda count: bar.update(line, advance=count))
    return {
        "identity": cache.identity,
        "texts": texts,
        "computed_texts": len(missing),
        "computed_bytes": size,
        "seconds": round(time.perf_counter() - start, 1),
    }
