"""Objective `clm`: pretrain a decoder from random weights on raw text, with the tokenizer it needs."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from cli.errors import UserError
from cli.limits import Limit, real
from corpora.docstring_pairs import training_side
from corpora.raw_text import of_percent
from encoders.precision import be_deterministic, best_device
from encoders.routers import experts_of
from records.files import alone_in, replacing, write_json, write_text
from records.identity import different_keys
from training.batches import PackedBatches
from training.finite import gradient_norm, refuse_step
from training.loop import fit
from training.objectives.objective import Config, Pretraining
from training.pretrain import balance_loss, base_model_card, bits_per_byte, train_bpe
from training.set_up import check_devices


class CausalLM(pl.LightningModule):
    """Next-token prediction over packed sequences; learning rate warm-up, plateau, linear decay to zero."""

    def __init__(self, model: PreTrainedModel, batch: Callable[[int], Tensor], config: Config) -> None:
        """batch: of a step's number, [B, L] ids."""
        super().__init__()
        self.model, self.batch, self.cfg, self.keys = model, batch, config, config["objective"]
        self.mixture = bool(experts_of(model))
        self.nats: dict[str, Tensor] = {}  # of the running step
        self._loss = torch.compile(self.plain_loss)  # sequences have one shape, so one compilation pays back

    def plain_loss(self, ids: Tensor) -> tuple[Tensor, Tensor]:
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
        ids = self.batch(self.global_step).to(self.device)
        nats, balance = self._loss(ids)
        self.log("loss", nats, prog_bar=True)
        if self.mixture:
            self.log("balance", balance)
        loss = nats + self.keys["balance"] * balance
        self.nats = {"loss": loss.detach()}
        return loss

    def on_before_optimizer_step(self, _optimizer: Any) -> None:
        figures = {**self.nats, "gradient norm": gradient_norm(self.parameters())}
        refuse_step(figures, self.global_step)

    def optimizer_step(self, *words: Any, **named: Any) -> None:
        start = time.perf_counter()
        super().optimizer_step(*words, **named)  # the whole step, forward and backward passes too
        tokens = self.keys["batch"] * self.keys["sequence_length"]
        self.log("tokens/s", tokens / (time.perf_counter() - start), prog_bar=True)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["config"] = self.cfg

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Raises `UserError` for a checkpoint of another configuration."""
        if other := different_keys(checkpoint["config"], self.cfg):
            raise UserError(
                f"The checkpoint of this study is of another configuration ({'; '.join(other[:4])}). "
                "Choose another study=<name>, or give resume=false to start anew."
            )

    def learning_rate_factor(self, step: int) -> float:
        """Warm-up over `warmup` steps, plateau, then linear decay over the last `decay` share of the steps."""
        warm = min(1.0, (step + 1) / max(1, self.keys["warmup"]))
        steps = self.cfg["trainer"]["max_steps"]
        left = (steps - step) / max(1.0, self.keys["decay"] * steps)
        return warm * min(1.0, max(0.0, left))

    def configure_optimizers(self) -> Any:
        """AdamW; norms and biases are not decayed."""
        groups = [
            {"params": [p for p in self.parameters() if p.ndim > 1], "weight_decay": self.keys["weight_decay"]},
            {"params": [p for p in self.parameters() if p.ndim <= 1], "weight_decay": 0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.keys["lr"], betas=(0.9, 0.95))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self.learning_rate_factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class CLM(Pretraining):
    """Next-token prediction from random weights, on the docstrings of the training side."""

    limits: ClassVar = {
        "seed": Limit(0),
        "trainer.max_steps": Limit(1),
        "trainer.checkpoint_every": Limit(0),
        **dict.fromkeys(("trainer.devices", "trainer.num_nodes"), Limit(1, largest=1)),
        "trainer.threads": Limit(1, "one for each core"),
        "objective.sequence_length": Limit(2),  # a token is predicted from those before it
        "objective.batch": Limit(1),
        "objective.lr": real(0),
        "objective.warmup": Limit(0),
        "objective.decay": real(0, largest=1),
        "objective.balance": real(0),
        "objective.weight_decay": real(0),
        "objective.held_out_percent": Limit(1, largest=99),
        "model.vocab_size": Limit(259),  # bytes and the three special tokens
    }

    @staticmethod
    def check(config: Config) -> None:
        """Refuse weights to start from, other data than docstrings, and sequences beyond the positions."""
        model, length = config["model"], config["objective"]["sequence_length"]
        if config["check"]:
            raise UserError("check=true counts a run with an encoder; objective=clm has none. Take check=true away.")
        if model.get("path") or not {"architecture", "vocab_size"} <= model.keys():
            raise UserError(
                f"objective=clm starts from an architecture; model={model['name']} has weights. "
                "Give model=tiny_scratch, or objective=next_token, which trains an adapter of a given base."
            )
        if "packages" not in config["data"]:
            raise UserError(f"objective=clm reads docstrings, not data={config['data']['name']}. Give data=docstrings.")
        if length > (positions := model["architecture"]["max_position_embeddings"]):
            raise UserError(
                f"objective.sequence_length={length} is more than the {positions} positions of the model. Lower it, or "
                "raise model.architecture.max_position_embeddings."
            )

    @staticmethod
    def pretrain(config: Config) -> None:
        """Train tokenizer and decoder and export them to `objective.export`. One process at a time does."""
        with alone_in(_place(config)):
            CLM._pretrain(config)

    @staticmethod
    def _pretrain(config: Config) -> None:
        check_devices(1, best_device(config["accelerator"]), config["accelerator"])
        pl.seed_everything(config["seed"], verbose=False)
        be_deterministic(config["deterministic"])
        model, o, steps = config["model"], config["objective"], config["trainer"]["max_steps"]
        whole, percent = [d.text for d in training_side(config["data"], config["cache_dir"])], o["held_out_percent"]
        texts, held_out = ([t for t in whole if of_percent(t, percent) == held] for held in (False, True))
        fingerprint = hashlib.sha256("\x1e".join(whole).encode()).hexdigest()
        if not (texts and held_out):
            raise UserError(f"{len(texts)} docstrings to train on, {len(held_out)} held out. Give more data.packages.")
        tokenizer = train_bpe(texts, model["vocab_size"], model["architecture"]["max_position_embeddings"])
        plain = {"add_special_tokens": False, "verbose": False}
        documents, unseen = (tokenizer(some, **plain)["input_ids"] for some in (texts, held_out))
        eos, length = tokenizer.eos_token_id, o["sequence_length"]
        ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": eos, "bos_token_id": None}
        shape = AutoConfig.for_model(**model["architecture"], vocab_size=len(tokenizer), **ends)
        decoder = AutoModelForCausalLM.from_config(shape)
        decoder.train()

        batches = PackedBatches(documents, eos, length, o["batch"], config["seed"])
        precision = "bf16-mixed" if config["precision"] != "fp32" else "32-true"
        settings: Config = {"precision": precision, "gradient_clip_val": 1.0, "log_every_n_steps": 25}
        fit(config, CausalLM(decoder, batches.batch, config), [], _place(config), **settings)
        figures = {
            "steps": steps,
            "tokens_seen": steps * o["batch"] * length,
            "tokens_distinct": batches.tokens_an_epoch,
            "threads": torch.get_num_threads(),
            "parameters": sum(p.numel() for p in decoder.parameters()),
            "data_sha256": fingerprint,
            "held_out_documents": len(held_out),
            "bits_per_byte": round(bits_per_byte(decoder, unseen, held_out, eos, length), 4),
        }
        card = base_model_card(figures, config["study"])
        with replacing(Path(o["export"])) as draft:
            decoder.to(torch.bfloat16).save_pretrained(draft)
            tokenizer.save_pretrained(draft)
            write_json(draft / "pretraining.json", {"figures": figures, "config": config})
            write_text(draft / "README.md", card)
        print(card)


def _place(config: Config) -> Path:
    return Path(config["runs_dir"]) / config["study"] / "clm" / f"seed{config['seed']}"
