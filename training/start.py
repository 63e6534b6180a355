"""From the command line's configuration to a run that may begin: what is finished, what fits, how many threads."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from cli.compose import plain
from cli.errors import UserError
from cli.quiet import quieten
from corpora.readers import data_fingerprint
from corpora.triples import Triple
from encoders.identity import base_fingerprints
from records.fingerprint import remember_below
from records.lineage import read_stages
from records.run_folder import RunFolder, fixed_words, run_folder
from training.cost.check import check
from training.manifest_facts import check_same

Config = dict[str, Any]


def start(
    cfg: DictConfig,
    check_sizes: Callable[[Config], None],
    train: Callable[[Config, RunFolder], None],
    read: Callable[[Config, str], list[Triple]],
) -> None:
    """Call `train` unless the run's folder says it is finished; with check=true only count what it would be.

    read: of the objective's data, with which a finished run is compared.
    """
    config = plain(cfg)
    remember_below(config["cache_dir"])
    if config["check"]:
        check_sizes(config)
        quieten()
        check(config)
        return
    hydra = HydraConfig.get()
    fixed = fixed_words(config, hydra.overrides.task, hydra.sweeper.get("params") or {})
    folder = run_folder(config, hydra.runtime.choices, fixed)
    if folder.claim(config):
        refuse_other_data(config, folder, read)
        refuse_other_stages(config, folder)
        print(f"{folder.path} is finished; nothing to do.")
        return
    check_sizes(config)
    quieten()
    torch.set_num_threads(
        config["trainer"]["threads"] or max(1, torch.get_num_threads() // config["trainer"]["devices"])
    )
    train(config, folder)


def refuse_other_data(config: Config, folder: RunFolder, read: Callable[[Config, str], list[Triple]]) -> None:
    """Refuse a finished run whose data or base are others now: it is not what the command asks for."""
    finished = f"{folder.path} was finished"
    try:
        now = {
            "data": {"sha256": data_fingerprint(config["data"], config["cache_dir"], read)},
            **base_fingerprints(config["model"]),
        }
    except UserError as error:
        raise UserError(f"{finished}, but what it was trained on cannot be compared: {error}") from error
    check_same(
        now,
        folder.manifest(),
        finished,
        "Put back what was there, choose another study=<name>, or delete that folder to train it anew.",
    )


def refuse_other_stages(config: Config, folder: RunFolder) -> None:
    """Refuse a finished run whose stages were trained again since: it is not what the command asks for."""
    if not config.get("lineage"):
        return
    now = [stage.adapter_sha256 for stage in read_stages(config["lineage"])]
    if now != [stage["adapter_sha256"] for stage in folder.manifest().get("lineage", [])]:
        raise UserError(
            f"{folder.path} is finished, but the stages it was trained on have changed since. "
            "Delete it to train it anew."
        )


def check_trainer(config: Config) -> None:
    """Refuse sizes of the trainer that do not fit together, before anything is loaded."""
    t = config["trainer"]
    batch, chunk, devices = t["global_batch_size"], t["chunk_size"], t["devices"]
    if chunk and chunk > batch:
        raise UserError(
            f"trainer.global_batch_size={batch} is smaller than trainer.chunk_size={chunk}. Lower chunk_size."
        )
    if batch % devices:
        raise UserError(f"trainer.global_batch_size={batch} is not divisible over trainer.devices={devices}.")
    if t["progress"] not in (True, False, "lines"):
        raise UserError(f"trainer.progress={t['progress']} must be true (a bar), lines or false.")
    if t["max_steps"] < 1:
        raise UserError(
            f"trainer.max_steps={t['max_steps']} trains nothing; for an untrained score use evaluate.py run=null."
        )
    if config["logging"]["wandb"] and not find_spec("wandb"):
        raise UserError("logging.wandb needs the package wandb. Install it: pip install wandb.")
