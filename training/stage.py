"""A stage on raw text: from texts to a finished run folder, with its held-out scores before and after."""

from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.utilities import rank_zero_only

from corpora.raw_text import read_texts
from corpora.triples import Triple
from records.run_folder import RunFolder
from training.batches import BatchOrder
from training.contrastive import split_validation
from training.loop import LAST, fit
from training.manifest_facts import continued, opening_manifest, step_facts, warn
from training.module import ContrastiveModule
from training.set_up import SetUp, finish, save_trained, set_up

Config = dict[str, Any]
Scores = dict[str, float]


class HeldOut(pl.Callback):
    """Score texts kept out of training every `every` steps (0: only at the end), and keep the last scores."""

    def __init__(self, score: Callable[[], Scores], every: int) -> None:
        self.score, self.every = score, every
        self.last: Scores = {}

    def on_train_batch_end(self, trainer: pl.Trainer, module: pl.LightningModule, *_: Any) -> None:
        """Score when the step has come; no random stream of training is touched."""
        step = trainer.global_step
        if step == trainer.max_steps or (self.every and step % self.every == 0):
            self.last = self.score()
            module.log_dict({f"held-out {k}": v for k, v in self.last.items()}, prog_bar=True, batch_size=1)


class TextStage:
    """What an objective on raw text adds to the common way of a run."""

    module: ContrastiveModule

    def __init__(self, made: SetUp, texts: list[Triple], held_out: list[Triple], order: BatchOrder) -> None:
        """Build `module`. texts, held_out: each text as query and positive."""
        raise NotImplementedError

    def held_out_scores(self) -> Scores:
        """Scores of the held-out texts, the same draws each time."""
        raise NotImplementedError

    def collapse(self, loss: float, before: Scores, after: Scores) -> str | None:
        """What is wrong with the trained stage, or None. loss: mean of the last steps."""
        raise NotImplementedError

    def further_facts(self, facts: Config) -> Config:
        """What the manifest says beside the common facts, or in place of them."""
        return {}


def train_stage(config: Config, folder: RunFolder, kind: type[TextStage]) -> None:
    """Train a stage of `kind` into `folder`; continue it where it was interrupted."""
    texts = read_texts(config["data"], config["cache_dir"])
    kept, held_out = split_validation(texts, config["data"]["validation"])
    made = set_up(config)
    t = config["trainer"]
    order = BatchOrder([x.source for x in kept], t["global_batch_size"], config["seed"], config["data"]["one_source"])
    stage = kind(made, kept, held_out, order)
    module = stage.module
    manifest = opening_manifest(config, module, texts, made.precision)
    manifest["data"]["texts"] = manifest["data"].pop("triples")
    if config["resume"] and (folder.path / LAST).exists():
        manifest = continued(manifest, folder.manifest())
    first = rank_zero_only.rank == 0  # type: ignore[attr-defined]  # of several processes, one writes
    if first:
        folder.write(manifest)
        print(announcement(folder, module, manifest), flush=True)
    before = stage.held_out_scores()  # LoRA is the identity here, also where a run goes on
    held = HeldOut(stage.held_out_scores, t["validate_every"])
    fit(config, module, held, folder.path)
    if not first:
        return
    save_trained(made.encoder, made.adapted, folder.path)  # before all that may fail
    held.last = held.last or stage.held_out_scores()  # no step was left: an earlier attempt ended after the last
    facts = step_facts(module, manifest)
    closing = {
        **facts,
        **stage.further_facts(facts),
        "held_out": {"before": before, "after": held.last},
        "collapse": stage.collapse(facts["loss"], before, held.last),
    }
    finish(folder, {**manifest, **closing})
    figures = ", ".join(f"{k} {before[k]:.3f} -> {held.last[k]:.3f}" for k in before)
    print(f"{folder.path}: loss {closing['loss']:.3f}; held-out {figures}")
    warn(folder, closing)


def announcement(folder: RunFolder, module: ContrastiveModule, manifest: Config) -> str:
    """What is about to be trained, and how much work it is."""
    t = module.cfg["trainer"]
    tokens = sum(map(len, module.prepared(0)[2]))
    return (
        f"{folder.path}: {t['max_steps']} steps of {t['global_batch_size']} texts from {len(module.triples):,}, about "
        f"{t['max_steps'] * tokens / 1e3:,.0f} k tokens; {manifest['parameters']['adapter']:,} adapter "
        "parameters train."
    )
