"""Objective `clm`: pretrain a decoder from random weights on raw text, with the tokenizer it needs."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from omegaconf import DictConfig
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from cli.compose import plain
from cli.errors import UserError
from cli.quiet import quieten
from corpora.readers import docstring_texts
from encoders.precision import be_deterministic, best_device
from encoders.routers import experts_of
from records.atomic import replacing, write_json, write_text
from records.identity import different_keys
from training.batches import PackedBatches
from training.finite import gradient_norm, refuse_checkpoint, refuse_state, refuse_step
from training.limits import check_clm
from training.loop import LAST, Clock, SaveLast, leave_where_stopped
from training.pretrain.bpe import train_bpe
from training.pretrain.load_balance import active_parameters, balance_loss, expert_shares
from training.pretrain.model_card import base_model_card, bits_per_byte, unigram_bits_per_byte
from training.set_up import check_devices

MAY_DIFFER = ("objective.export:", "trainer.checkpoint_every:")  # no weight depends on them


class CausalLM(pl.LightningModule):
    """Next-token prediction over packed sequences; learning rate warm-up, plateau, linear decay to zero."""

    def __init__(self, model: PreTrainedModel, batches: PackedBatches, objective: DictConfig, steps: int) -> None:
        super().__init__()
        self.model, self.batches, self.objective, self.steps = model, batches, objective, steps
        self.mixture = bool(experts_of(model))
        self.settings: dict[str, Any] = {}  # the whole configuration, kept in the checkpoint
        self.nats: dict[str, Tensor] = {}  # of the running step
        self.seconds = 0.0  # of all attempts, kept in the checkpoint
        self._start = time.perf_counter()
        self._loss = torch.compile(self._plain_loss)  # sequences have one shape, so one compilation pays back

    def _plain_loss(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Nats a token, and how uneven the experts are in use (zero in a dense model)."""
        routed = {"output_router_logits": True} if self.mixture else {}
        outputs = self.model.model(input_ids=ids, use_cache=False, **routed)
        logits = self.model.lm_head(outputs.last_hidden_state[:, :-1])
        nats = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
        if not self.mixture:
            return nats, nats.new_zeros(())
        return nats, balance_loss(outputs.router_logits, self.model.config.num_experts_per_tok)

    def training_step(self, _tick: int, _index: int) -> Tensor:
        """Return the mean loss in nats a token of the step's batch, plus the balance loss of a mixture of experts."""
        nats, balance = self._loss(self.batches.batch(self.global_step).to(self.device))
        self.log("loss", nats, prog_bar=True)
        if self.mixture:
            self.log("balance", balance)
        loss = nats + self.objective.balance * balance
        self.nats = {"loss": loss.detach()}
        return loss

    def on_before_optimizer_step(self, _optimizer: Any) -> None:
        """Stop before weights are changed by a loss or gradient that is not finite."""
        refuse_step({**self.nats, "gradient norm": gradient_norm(self.parameters())}, self.global_step)

    def optimizer_step(self, *words: Any, **named: Any) -> None:
        """Step, and stop before anything is kept that is not finite."""
        step = self.global_step
        super().optimizer_step(*words, **named)
        refuse_state(self.named_parameters(), self.optimizers(), step)

    def on_train_start(self) -> None:
        """Start the clock of this attempt."""
        self._start = time.perf_counter()

    def seconds_so_far(self) -> float:
        """Training time over all attempts."""
        return self.seconds + time.perf_counter() - self._start

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the time spent, and what was asked for."""
        checkpoint["seconds"], checkpoint["config"] = self.seconds_so_far(), self.settings

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take up the time spent. Raises `UserError` for numbers that are not finite, or of another configuration."""
        refuse_checkpoint(checkpoint)
        other = [d for d in different_keys(checkpoint.get("config", {}), self.settings) if not d.startswith(MAY_DIFFER)]
        if other:
            raise UserError(
                f"The checkpoint of this study is of another configuration ({'; '.join(other[:4])}). "
                "Choose another study=<name>, or give resume=false to start anew."
            )
        self.seconds, self._start = checkpoint["seconds"], time.perf_counter()

    def learning_rate_factor(self, step: int) -> float:
        """Warm-up over `warmup` steps, plateau, then linear decay over the last `decay` share of the steps."""
        warm = min(1.0, (step + 1) / max(1, self.objective.warmup))
        left = (self.steps - step) / max(1.0, self.objective.decay * self.steps)
        return warm * min(1.0, max(0.0, left))

    def configure_optimizers(self) -> Any:
        """AdamW; norms and biases are not decayed."""
        decayed = [p for p in self.parameters() if p.ndim > 1]
        others = [p for p in self.parameters() if p.ndim <= 1]
        groups = [
            {"params": decayed, "weight_decay": self.objective.weight_decay},
            {"params": others, "weight_decay": 0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.objective.lr, betas=tuple(self.objective.betas))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self.learning_rate_factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def pretrain(cfg: DictConfig) -> None:
    """Train tokenizer and decoder on the training side's text and export them to `objective.export`."""
    if cfg.check:
        raise UserError("check=true counts a contrastive run; objective=clm has no check. Take check=true away.")
    if cfg.backbone.frozen:
        raise UserError("backbone.frozen=true trains a head alone; objective=clm has none. Take one of them away.")
    check_clm(plain(cfg))
    check_devices(1, best_device(cfg.accelerator), cfg.accelerator)
    quieten()
    pl.seed_everything(cfg.seed, verbose=False)
    torch.set_num_threads(cfg.trainer.threads or torch.get_num_threads())
    be_deterministic(cfg.deterministic)
    o = cfg.objective
    texts, held_out, fingerprint = docstring_texts(plain(cfg.data), o.held_out_percent, cfg.cache_dir)
    tokenizer = train_bpe(texts, cfg.model.vocab_size, cfg.model.architecture.max_position_embeddings)
    documents, unseen = _ids(tokenizer, texts), _ids(tokenizer, held_out)
    eos = tokenizer.eos_token_id
    model = AutoModelForCausalLM.from_config(_architecture(cfg.model, tokenizer))
    random_bits = bits_per_byte(model, unseen, held_out, eos, o.sequence_length)
    model.train()

    folder = Path(cfg.runs_dir) / cfg.study / "clm" / f"seed={cfg.seed}"
    batches = PackedBatches(documents, eos, o.sequence_length, o.batch, cfg.seed)
    seconds = _fit(cfg, CausalLM(model, batches, o, cfg.trainer.max_steps), folder)

    figures = {
        "steps": cfg.trainer.max_steps,
        "tokens_seen": cfg.trainer.max_steps * o.batch * o.sequence_length,
        "tokens_distinct": batches.tokens_an_epoch,
        "hours": round(seconds / 3600, 2),
        "threads": torch.get_num_threads(),
        "parameters": sum(p.numel() for p in model.parameters()),
        **_mixture_figures(model, unseen, o.sequence_length),
        "data_sha256": fingerprint,
        "held_out_documents": len(held_out),
        "bits_per_byte": round(bits_per_byte(model, unseen, held_out, eos, o.sequence_length), 4),
        "bits_per_byte_unigram": round(unigram_bits_per_byte(documents, unseen, held_out, eos, len(tokenizer)), 4),
        "bits_per_byte_random_weights": round(random_bits, 4),
    }
    with replacing(Path(o.export)) as draft:
        model.to(torch.bfloat16).save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        write_json(draft / "pretraining.json", {"figures": figures, "config": plain(cfg)})
        write_text(draft / "README.md", base_model_card(figures, cfg.study))
    print(base_model_card(figures, cfg.study))


def _mixture_figures(model: PreTrainedModel, unseen: list[list[int]], length: int) -> dict[str, Any]:
    """What the card says of a mixture of experts, measured on held-out text; empty for a dense model."""
    shares = expert_shares(model, unseen, length)
    if not shares:
        return {}
    return {
        "active_parameters": active_parameters(model),
        "expert_shares": [[round(share, 4) for share in of_layer] for of_layer in shares],
    }


def _fit(cfg: DictConfig, module: CausalLM, folder: Path) -> float:
    """Run Lightning, continuing from the last checkpoint where there is one; return the seconds of all attempts.

    The checkpoint of the last step stays: where measuring or writing fails, the same command does only that.
    """
    from pytorch_lightning.loggers import CSVLogger

    device = best_device(cfg.accelerator)
    trainer = pl.Trainer(
        max_steps=cfg.trainer.max_steps,
        max_epochs=1,  # of the clock; the epochs of the text are PackedBatches'
        accelerator=device.type,
        devices=1,
        precision="bf16-mixed" if cfg.precision != "fp32" else "32-true",
        gradient_clip_val=1.0,
        logger=CSVLogger(folder, name="logs"),
        callbacks=[SaveLast(folder, cfg.trainer.checkpoint_every)],
        enable_checkpointing=False,
        enable_progress_bar=cfg.trainer.progress is True,
        log_every_n_steps=25,
        enable_model_summary=False,
    )
    last = folder / LAST
    module.settings = plain(cfg)
    with suppress(SystemExit):
        trainer.fit(
            module,
            Clock(cfg.trainer.max_steps),
            ckpt_path=last if last.exists() and cfg.resume else None,
            weights_only=True,
        )
    leave_where_stopped(trainer, cfg.trainer.max_steps, folder)
    return module.seconds_so_far()


def _ids(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> list[list[int]]:
    return tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]


def _architecture(model: DictConfig, tokenizer: PreTrainedTokenizerFast) -> PretrainedConfig:
    shape = dict(plain(model.architecture))
    return AutoConfig.for_model(
        shape.pop("model_type"),
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        **shape,
    )
