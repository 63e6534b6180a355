"""Train a head on a frozen backbone (`backbone.frozen=true`): compute the states of all rows before the first step."""

from itertools import chain
from typing import Any

from cli.errors import UserError
from poolers.shared.registry import pooler_class, reads_padding
from training.module import StepModule

Config = dict[str, Any]


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


def fill_states(module: StepModule) -> Config:
    """Compute the states that the cache lacks of the rows of all steps; return facts for the manifest.

    Killed at any time, the same command goes on from the last whole shard.
    """
    from encoders.frozen import CachedEncoder, compute_states, text_key

    encoder, work = module.encoder, module.objective.work
    assert isinstance(encoder, CachedEncoder)
    steps = (module.prepared(step)[2] for step in range(module.cfg["trainer"]["max_steps"]))
    rows = {text_key(r.ids, r.roles): r for r in chain(module.objective.held_out_rows(), chain.from_iterable(steps))}
    cache = encoder.cache
    missing = cache.missing(list(rows.values()))
    print(f"States of {len(rows):,} texts in {cache.folder}: {len(missing):,} to compute.", flush=True)
    compute_states(encoder, work.tokenizer, missing, work.plan.token_budget)
    return {"identity": cache.identity, "texts": len(rows), "computed_texts": len(missing)}
