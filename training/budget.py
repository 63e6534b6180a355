"""`token_budget=null`: the tokens of a forward pass in training, on a GPU the largest power of two that fits."""

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.utilities import rank_zero_only

from encoders.limits import SHARED_GPU
from encoders.mixse import mixture_of
from encoders.text_encoder import is_out_of_memory, usual_budget
from encoders.tokens import Tokens
from records.files import alone_in, read_object, write_json
from training.large_batch import world_size
from training.module import StepModule

LEAST, FIRST, MOST = 256, 4096, 65_536  # tokens
MARGIN = 1.25  # tokens of a trial over those that it stands for: for the optimiser, later steps, and other designs
OF_A_STUDY = "token_budget.json"  # in the folder of a study: the number that its runs share


def choose(module: StepModule, folder: Path) -> int:
    """Return the tokens of a forward pass of a run that begins: `token_budget`, or where that is null what fits.

    Dropout is drawn chunk by chunk, so runs of one study take one number: a run tries that of the run before it, and
    finds a smaller one only if it does not fit. folder: the run's.
    """
    study, usual = folder.absolute().parents[1], usual_budget(module.cfg)
    if module.cfg["token_budget"] or not _has_a_gpu(module):
        return usual
    with alone_in(study, wait=True):  # runs that begin together ask one after another
        shared = read_object(study / OF_A_STUDY)["tokens"] if (study / OF_A_STUDY).exists() else None
        if world_size() > 1:  # a later job of a sweep: a trial would wait for a process that found no memory
            return shared or usual
        if not (shared and fits(module, shared)):
            shared = largest(
                lambda tokens: fits(module, round(MARGIN * tokens)),
                shared or most(module.cfg["trainer"], module.prepared(0)[2]),
            )
            write_json(study / OF_A_STUDY, {"tokens": shared})
    rank_zero_only(print)(f"{folder}: {shared:,} tokens in a forward pass, which fit into memory.", flush=True)
    return shared


def most(trainer: dict[str, Any], rows: Sequence[Tokens]) -> int:
    """Return the largest number that is tried: of several processes each is to have a chunk of the first step."""
    processes = trainer["devices"] * trainer["num_nodes"]
    share = sum(map(len, rows)) // processes
    return MOST if processes == 1 else min(MOST, max(LEAST, 1 << max(0, share.bit_length() - 1)))


def _has_a_gpu(module: StepModule) -> bool:
    """Return whether a decoder is trained on a GPU that no other run of this program shares."""
    config, device = module.cfg, next(module.encoder.parameters()).device
    of_joblib = HydraConfig.initialized() and "joblib" in HydraConfig.get().launcher._target_
    alone = SHARED_GPU not in os.environ and not of_joblib
    trains = config["trainer"]["max_steps"] and not config["backbone"]["frozen"]
    return bool(device.type == "cuda" and alone and trains)


def largest(fitting: Callable[[int], bool], most: int = MOST) -> int:
    """Return the largest power of two from `LEAST` to `most` that fits, tried from `FIRST` on; without any `LEAST`."""
    tokens = min(FIRST, most)
    if fitting(tokens):
        while 2 * tokens <= most and fitting(2 * tokens):
            tokens *= 2
        return tokens
    tokens //= 2
    while tokens > LEAST and not fitting(tokens):
        tokens //= 2
    return tokens


def fits(module: StepModule, tokens: int) -> bool:
    """Return whether memory holds a step of one forward pass of `tokens` tokens, its loss and its backward pass.

    Afterwards gradients, random generators, counts and chunks are what they were before a first step.
    """
    objective, work = module.objective, module.objective.work
    plan, counts, device = work.plan, dict(objective.counts), next(module.encoder.parameters()).device
    work.plan = replace(plan, token_budget=tokens)
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            objective.backward(*objective.lay_out(_examples(module, tokens), 0), 0)
        return True
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        work.plan = plan
        objective.counts.update(counts)
        module.zero_grad(set_to_none=True)
        for sublayer in mixture.sublayers if (mixture := mixture_of(module.encoder.backbone)) else ():
            sublayer.weights = None  # of a pass that memory did not hold they keep the whole graph
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _examples(module: StepModule, tokens: int) -> list[int]:
    """Numbers of the first examples in the order of training whose rows have about so many tokens together."""
    batch, _, rows = module.prepared(0)
    count: Any = max(2, ceil(tokens * len(batch) / sum(map(len, rows))))
    steps = range(ceil(count / len(batch)))
    return [i for step in steps for i in module.order.batch(step)][:count]
