"""Objective `infonce`: from a configuration to a finished run folder."""

from typing import Any

from omegaconf import DictConfig
from pytorch_lightning.utilities import rank_zero_only

from cli.errors import UserError
from corpora.readers import read_triples
from corpora.triples import Triple
from encoders.attention.kernels import refuse_unpadded
from encoders.text_encoder import TextEncoder
from poolers.shared.registry import reads_padding
from records.run_folder import RunFolder
from training.batches import BatchOrder
from training.corpus_statistics import fit_statistics, sample
from training.frozen_states import check_frozen, fill_states
from training.large_batch import LargeBatch
from training.limits import check_contrastive
from training.loop import LAST, fit
from training.manifest_facts import announcement, closing_facts, continued, opening_manifest, warn
from training.module import LOSS_DTYPES, ContrastiveModule
from training.objectives.infonce import check_matryoshka
from training.set_up import finish, save_trained, set_up
from training.start import check_trainer, start
from training.validation import Validation

Config = dict[str, Any]


def finetune(cfg: DictConfig) -> None:
    """Train the cell of `cfg` unless its folder says it is finished; continue it where it was interrupted."""
    start(cfg, check_sizes, train_cell, read_triples)


def check_sizes(config: Config) -> None:
    """Refuse sizes that do not fit together, before anything is loaded."""
    check_contrastive(config)
    check_trainer(config)
    refuse_unpadded(config["model"], reads_padding(config["pooler"]))
    batch = config["trainer"]["global_batch_size"]
    if batch < 2:
        raise UserError(f"trainer.global_batch_size={batch} has no in-batch negatives. Give at least 2.")
    if config["objective"]["loss_dtype"] not in LOSS_DTYPES:
        raise UserError(f"objective.loss_dtype={config['objective']['loss_dtype']} must be fp32 or bf16.")
    micro = config["objective"]["loss_queries"]
    if micro and (micro < 2 or batch % micro):
        raise UserError(
            f"objective.loss_queries={micro} must be at least 2 and divide trainer.global_batch_size={batch}."
        )
    if not config["objective"]["temperature"] > 0:
        raise UserError(f"objective.temperature={config['objective']['temperature']} must be above zero.")
    check_matryoshka(config["objective"])
    if config["backbone"]["frozen"]:
        check_frozen(config)


def train_cell(config: Config, folder: RunFolder) -> None:
    """Train one cell into `folder`."""
    triples = read_triples(config["data"], config["cache_dir"])
    kept, held_out = split_validation(triples, config["data"]["validation"])
    made = set_up(config)
    encoder = made.encoder
    if encoder.pooler.lacks_statistics:
        fit_statistics(encoder, made.tokenizer, sample(config, kept, made.tokenizer), config["token_budget"])
    order = BatchOrder(
        [t.source for t in kept], config["trainer"]["global_batch_size"], config["seed"], config["data"]["one_source"]
    )
    module = ContrastiveModule(made.work(LargeBatch), kept, order, config)

    assert encoder.training, "dropout would be off"
    manifest = opening_manifest(config, module, triples, made.precision)
    first = rank_zero_only.rank == 0  # type: ignore[attr-defined]  # of several processes, one writes
    if config["resume"] and (folder.path / LAST).exists():
        manifest = continued(manifest, folder.manifest())
    if first:
        folder.write(manifest)
        print(announcement(folder, module, manifest), flush=True)
    validation = Validation(
        TextEncoder(encoder, made.tokenizer, "", config["token_budget"]),
        held_out,
        config["data"].get("instruction"),
        config["trainer"]["validate_every"],
        str(folder.path),
    )
    states = {"states": fill_states(module, validation)} if config["backbone"]["frozen"] else {}
    fit(config, module, validation, folder.path)
    if not first:
        return
    save_trained(encoder, made.adapted, folder.path)  # before all that may fail
    if validation.ndcg is None:  # no step was left: an earlier attempt ended after the last
        validation.score()
    closing = closing_facts(module, validation, manifest)
    finish(folder, {**manifest, **closing, **states})
    print(f"{folder.path}: loss {closing['loss']:.3f}, validation nDCG@10 {closing['validation_ndcg_at_10']:.3f}")
    warn(folder, closing)


def split_validation(triples: list[Triple], count: int) -> tuple[list[Triple], list[Triple]]:
    """Return (training, validation): every k-th triple is kept out, so that all sources are among them."""
    if not 0 < count < len(triples) / 2:
        raise UserError(
            f"data.validation={count} does not fit {len(triples)} triples. Give between 1 and half of them."
        )
    stride = len(triples) // count
    held_out = set(range(0, stride * count, stride))
    return [t for i, t in enumerate(triples) if i not in held_out], [triples[i] for i in sorted(held_out)]
