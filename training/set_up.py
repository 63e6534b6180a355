"""What every objective starts from: encoder with LoRA or on cached states, tokenizer, how batches become chunks."""

from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from encoders.cached_encoder import open_states
from encoders.encoder import Encoder
from encoders.loading import build_encoder, build_tokenizer
from encoders.lora import add_lora
from encoders.precision import Precision, best_device, resolve_precision
from encoders.tokens import TextTokenizer
from records.errors import UserError
from records.streams import stream_seed
from training.large_batch import ChunkPlan, LargeBatch

Config = dict[str, Any]
Work = TypeVar("Work", bound=LargeBatch)


@dataclass(frozen=True)
class SetUp:
    """adapted: the PEFT model; None where the backbone is frozen."""

    config: Config
    encoder: Encoder
    adapted: Any
    tokenizer: TextTokenizer
    precision: Precision

    def work(self, kind: type[Work]) -> Work:
        """How a global batch is run, in training mode."""
        t = self.config["trainer"]
        plan = ChunkPlan(
            self.config["token_budget"], t["chunk_size"], t["gradcache"], t["sync_gradients"], t["graph_tokens"]
        )
        return kind(self.encoder.train(), self.tokenizer, plan, self.config["seed"])


def set_up(config: Config) -> SetUp:
    """Build what `config` describes. Raises `UserError` for devices, stages and sizes that do not fit."""
    device = best_device(config["accelerator"])
    check_devices(config["trainer"]["devices"], device, config["accelerator"])
    precision = resolve_precision(config["precision"], device)
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
    return SetUp(config, encoder, adapted, tokenizer, precision)


def check_devices(devices: int, device: torch.device, accelerator: str = "auto") -> None:
    """Refuse more processes than GPUs, and a GPU where there is none."""
    if accelerator in ("gpu", "cuda") and device.type != "cuda":
        raise UserError(f"accelerator={accelerator}, but torch finds no GPU here. Give accelerator=auto.")
    if device.type == "cuda" and devices > torch.cuda.device_count():
        raise UserError(
            f"trainer.devices={devices}, but this machine has {torch.cuda.device_count()} GPU. "
            "Lower trainer.devices: batches and gradients stay the same."
        )
