"""`backbone.frozen=true`: which texts a run will read, and their states computed before its first step."""

import shutil
import time
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cli.errors import UserError
from encoders.frozen.cached_encoder import CachedEncoder, compute_states
from encoders.frozen.state_cache import StateCache, text_key
from poolers.shared.registry import pooler_class, pooler_names, reads_padding
from training.module import ContrastiveModule
from training.validation import Validation

Config = dict[str, Any]
Pair = tuple[str, str]  # instruction, text
GIB = 2**30


def check_frozen(config: Config) -> None:
    """Refuse a frozen run without a head to train, and one of several processes."""
    name = config["pooler"]["name"]
    if name in pooler_names() and not trains(name):
        raise UserError(
            f"backbone.frozen=true with pooler={name} leaves nothing to train: {name} has no parameters. "
            f"Poolers that train: {', '.join(filter(trains, pooler_names()))}."
        )
    if config["pooler"].get("trainable") is False:
        raise UserError(
            "backbone.frozen=true with pooler.trainable=false leaves nothing to train. Leave one of them out; for an "
            "untrained score use evaluate.py run=null."
        )
    if name in pooler_names() and pooler_class(name).consumes == "routers":
        raise UserError(
            f"backbone.frozen=true keeps hidden states alone, and pooler={name} reads routers. "
            "Set backbone.frozen=false."
        )
    if reads_padding(config["pooler"]):
        raise UserError(
            f"backbone.frozen=true keeps no states of padding, which pooler={name} reads with last_real=false or "
            "mask_padding=false. Leave one out."
        )
    if config["trainer"]["devices"] > 1:
        raise UserError(
            f"backbone.frozen=true trains in one process, but trainer.devices={config['trainer']['devices']}. "
            "Set trainer.devices=1: the head alone is quick."
        )


def trains(pooler: str) -> bool:
    """Whether the pooler of that name has parameters. Its file alone is imported: the manifest lists what is."""
    module = import_module(f"poolers.{pooler}")
    return any(getattr(v, "needs_training", False) for v in vars(module).values() if isinstance(v, type))


def fill_states(module: ContrastiveModule, validation: Validation) -> Config:
    """Compute what the cache lacks of the texts that the run will read, after saying how large it will be.

    Returns facts for the manifest. Raises `UserError` where the disk lacks the room. Killed at any time, the same
    command goes on from the last whole shard.
    """
    encoder, tokenizer = module.encoder, module.work.tokenizer
    assert isinstance(encoder, CachedEncoder)
    rows = tokenizer.pairs(list({*consumed(module), *validated(validation)}))
    missing = encoder.cache.missing(rows)
    tokens = sum(map(len, missing))
    texts = len({text_key(r.ids, r.roles) for r in rows})  # two long texts may be one after truncation
    print(_plan(encoder.cache, texts, len(missing), tokens), flush=True)
    _refuse_full_disk(encoder.cache, tokens)
    start = time.perf_counter()
    with _progress(module.cfg["trainer"]["progress"] is True and tokens > 0) as bar:
        line = bar.add_task("states", total=tokens)
        compute_states(
            encoder, tokenizer, missing, module.cfg["token_budget"], lambda count: bar.update(line, advance=count)
        )
    return {
        "identity": encoder.cache.identity,
        "texts": texts,
        "computed_texts": len(missing),
        "computed_bytes": tokens * encoder.cache.bytes_a_token,
        "seconds": round(time.perf_counter() - start, 1),
    }


def consumed(module: ContrastiveModule) -> set[Pair]:
    """The (instruction, text) pairs of all steps, known in advance since the step's number decides the batch."""
    pairs: set[Pair] = set()
    for step in range(module.cfg["trainer"]["max_steps"]):
        pairs.update(module.lay_out(module.order.batch(step)).texts)
    return pairs


def validated(validation: Validation) -> set[Pair]:
    """The (instruction, text) pairs of the validation."""
    return {*validation.queries, *((validation.of_document, d) for d in validation.documents)}


def _plan(cache: StateCache, texts: int, missing: int, tokens: int) -> str:
    what = f"States of {texts:,} texts ({cache.layers} layers x {cache.width}, {cache.dtype}) in {cache.folder}"
    if not missing:
        return f"{what}: all there."
    size = tokens * cache.bytes_a_token / GIB
    return f"{what}: {texts - missing:,} there, {missing:,} ({tokens:,} tokens) to compute, {size:.2f} GiB."


def _refuse_full_disk(cache: StateCache, tokens: int) -> None:
    need, free = tokens * cache.bytes_a_token, shutil.disk_usage(cache.folder).free
    if need > free:
        raise UserError(
            f"The states need {need / GIB:.2f} GiB and {cache.folder} has {free / GIB:.2f} GiB free. Free some disk, "
            "give cache_dir=<folder on a larger disk>, or lower trainer.max_steps or max_length."
        )


def _progress(shown: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} of {task.total:,} tokens"))
    return Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), disable=not shown
    )
