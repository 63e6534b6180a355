"""Objective `infonce`: from a configuration to a finished run folder."""

from importlib.util import find_spec
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pytorch_lightning.utilities import rank_zero_only

from corpora.readers import read_triples
from corpora.triples import Triple
from encoders.cached_encoder import open_states
from encoders.corpus_statistics import fit_statistics
from encoders.loading import build_encoder, build_tokenizer
from encoders.lora import add_lora
from encoders.precision import best_device, resolve_precision
from encoders.text_encoder import TextEncoder
from records.config import plain
from records.errors import UserError
from records.quiet import quieten
from records.run_folder import RunFolder, run_folder
from records.streams import stream_seed
from training.batches import BatchOrder
from training.check import check
from training.checkpoints import LAST
from training.facts import announcement, closing_facts, continued, opening_manifest
from training.frozen import check_frozen, fill_states
from training.large_batch import ChunkPlan, LargeBatch
from training.limits import check_contrastive
from training.loop import fit
from training.module import LOSS_DTYPES, ContrastiveModule
from training.saving import save_trained
from training.standardise import sample
from training.validation import Validation

Config = dict[str, Any]


def finetune(cfg: DictConfig) -> None:
    """Train the cell of `cfg` unless its folder says it is finished; continue it where it was interrupted."""
    config = plain(cfg)
    if config["check"]:
        check_sizes(config)
        quieten()
        check(config)
        return
    folder = run_folder(config, HydraConfig.get().runtime.choices)
    if folder.claim(config):
        print(f"{folder.path} is finished; nothing to do.")
        return
    check_sizes(config)
    quieten()
    torch.set_num_threads(
        config["trainer"]["threads"] or max(1, torch.get_num_threads() // config["trainer"]["devices"])
    )
    train_cell(config, folder)


def check_sizes(config: Config) -> None:
    """Refuse sizes that do not fit together, before anything is loaded."""
    check_contrastive(config)
    t = config["trainer"]
    batch, chunk, devices = t["global_batch_size"], t["chunk_size"], t["devices"]
    if chunk and chunk > batch:
        raise UserError(
            f"trainer.global_batch_size={batch} is smaller than trainer.chunk_size={chunk}. Lower chunk_size."
        )
    if batch % devices:
        raise UserError(f"trainer.global_batch_size={batch} is not divisible over trainer.devices={devices}.")
    if batch < 2:
        raise UserError(f"trainer.global_batch_size={batch} has no in-batch negatives. Give at least 2.")
    if t["progress"] not in (True, False, "lines"):
        raise UserError(f"trainer.progress={t['progress']} must be true (a bar), lines or false.")
    if t["max_steps"] < 1:
        raise UserError(
            f"trainer.max_steps={t['max_steps']} trains nothing; for an untrained score use evaluate.py run=null."
        )
    if config["logging"]["wandb"] and not find_spec("wandb"):
        raise UserError("logging.wandb needs the package wandb. Install it: pip install wandb.")
    if config["objective"]["loss_dtype"] not in LOSS_DTYPES:
        raise UserError(f"objective.loss_dtype={config['objective']['loss_dtype']} must be fp32 or bf16.")
    micro = config["objective"]["loss_queries"]
    if micro and (micro < 2 or batch % micro):
        raise UserError(
            f"objective.loss_queries={micro} must be at least 2 and divide trainer.global_batch_size={batch}."
        )
    if not config["objective"]["temperature"] > 0:
        raise UserError(f"objective.temperature={config['objective']['temperature']} must be above zero.")
    if config["backbone"]["frozen"]:
        check_frozen(config)


def check_devices(devices: int, device: torch.device, accelerator: str = "auto") -> None:
    """Refuse more processes than GPUs, and a GPU where there is none."""
    if accelerator in ("gpu", "cuda") and device.type != "cuda":
        raise UserError(f"accelerator={accelerator}, but torch finds no GPU here. Give accelerator=auto.")
    if device.type == "cuda" and devices > torch.cuda.device_count():
        raise UserError(
            f"trainer.devices={devices}, but this machine has {torch.cuda.device_count()} GPU. "
            "Lower trainer.devices: batches and gradients stay the same."
        )


def train_cell(config: Config, folder: RunFolder) -> None:
    """Train one cell into `folder`."""
    device = best_device(config["accelerator"])
    check_devices(config["trainer"]["devices"], device, config["accelerator"])
    precision = resolve_precision(config["precision"], device)
    triples = read_triples(config["data"], config["cache_dir"])
    kept, held_out = split_validation(triples, config["data"]["validation"])
    encoder = build_encoder(config, precision, device)
    frozen, adapted = config["backbone"]["frozen"], None
    if frozen:
        encoder = open_states(encoder, config, precision)
    else:
        adapted = add_lora(encoder.backbone, config["lora"], stream_seed(config["seed"], "adapter"))
    if config["trainer"]["gradient_checkpointing"] and not frozen:
        encoder.backbone.gradient_checkpointing_enable({"use_reentrant": False})
        encoder.backbone.enable_input_require_grads()
    tokenizer = build_tokenizer(config, encoder.backbone.config.get_text_config().max_position_embeddings)
    if encoder.pooler.lacks_statistics:
        fit_statistics(encoder, tokenizer, sample(config, kept, tokenizer), config["token_budget"])
    order = BatchOrder(
        [t.source for t in kept], config["trainer"]["global_batch_size"], config["seed"], config["data"]["one_source"]
    )
    t = config["trainer"]
    plan = ChunkPlan(config["token_budget"], t["chunk_size"], t["gradcache"], t["sync_gradients"], t["graph_tokens"])
    module = ContrastiveModule(LargeBatch(encoder.train(), tokenizer, plan, config["seed"]), kept, order, config)

    assert encoder.training, "dropout would be off"
    manifest = opening_manifest(config, module, triples, precision)
    first = rank_zero_only.rank == 0  # type: ignore[attr-defined]  # of several processes, one writes
    if config["resume"] and (folder.path / LAST).exists():
        manifest = continued(manifest, folder.manifest())
    if first:
        folder.write(manifest)
        print(announcement(folder, module, manifest), flush=True)
    validation = Validation(
        TextEncoder(encoder, tokenizer, "", config["token_budget"]),
        held_out,
        config["data"].get("instruction"),
        config["trainer"]["validate_every"],
    )
    states = {"states": fill_states(module, validation)} if frozen else {}
    fit(config, module, validation, folder.path)
    closing = closing_facts(module, validation, manifest)
    if not first:
        return
    save_trained(encoder, adapted, folder.path)
    folder.write({**manifest, **closing, **states, "status": "finished"})
    (folder.path / LAST).unlink(missing_ok=True)
    print(f"{folder.path}: loss {closing['loss']:.3f}, validation nDCG@10 {closing['validation_ndcg_at_10']:.3f}")
    if closing["collapse"]:
        print(f"warning: {folder.path} collapsed: {closing['collapse']}.")


def split_validation(triples: list[Triple], count: int) -> tuple[list[Triple], list[Triple]]:
    """Return (training, validation): every k-th triple is kept out, so that all sources are among them."""
    if not 0 < count < len(triples) / 2:
        raise UserError(
            f"data.validation={count} does not fit {len(triples)} triples. Give between 1 and half of them."
        )
    stride = len(triples) // count
    held_out = set(range(0, stride * count, stride))
    return [t for i, t in enumerate(triples) if i not in held_out], [triples[i] for i in sorted(held_out)]
