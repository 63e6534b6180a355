"""A decoder of a published shape with random weights, made on the card itself: no hub, no copy on the CPU."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModel, PreTrainedModel

from cli.compose import composed, plain
from encoders.attention.kernels import kernel_of
from encoders.attention.pattern import pattern_of
from encoders.attention.probe import probe
from encoders.attention.switch import set_attention
from encoders.backbone import shape_of
from encoders.lora import add_lora
from encoders.precision import resolve_precision
from records.streams import stream_seed

MODELS = ("qwen2_0_5b", "mistral_7b")
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
SMALL |= {"intermediate_size": 96, "vocab_size": 8192}
SMALL_WORDS = ("trainer.global_batch_size=8", "max_length=48", "token_budget=128", "trainer.chunk_size=4")


def card_config(model: str, pooler: str, attn: str, small: bool = False) -> dict[str, Any]:
    """The configuration of a cell of experiment=paper/<model>; `small`: two narrow layers and eight queries a batch."""
    words = [f"experiment=paper/{model}", f"pooler={pooler}", f"attn={attn}"]
    if small:
        words += [f"model.architecture.{key}={value}" for key, value in SMALL.items()]
        words += [*SMALL_WORDS, "head.num_queries=8", "head.num_heads=4"]
    return plain(composed("train", words))


@dataclass
class Card:
    """Where things run, and the clock and memory meter of that place. A CPU has no meter of its own: peak is None."""

    device: torch.device

    @property
    def name(self) -> str:
        """Of the card."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"

    def wait(self) -> None:
        """Until all that was started is done; only then a clock says something."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def seconds(self, work: Callable[[], object]) -> float:
        """What `work` takes."""
        self.wait()
        start = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - start

    def forget_peak(self) -> None:
        """Give unused memory back and measure the peak anew."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)

    @property
    def peak_bytes(self) -> int | None:
        """Largest allocation since `forget_peak`."""
        return torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else None

    @property
    def held_bytes(self) -> int | None:
        """What is allocated now."""
        return torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else None


def random_backbone(config: dict[str, Any], card: Card) -> PreTrainedModel:
    """Return the frozen decoder of `config` with random weights and LoRA; both attentions are proved on it."""
    precision = resolve_precision(config["precision"], card.device)
    torch.manual_seed(stream_seed(config["seed"], "random model"))
    with torch.device(card.device):
        shape = shape_of(config["model"])
        backbone = AutoModel.from_config(
            shape, dtype=precision.weights, attn_implementation=kernel_of(config["model"], shape)
        )
    backbone.requires_grad_(False).eval()
    for pattern in (pattern_of({"name": name}) for name in ("causal", "bi")):
        set_attention(backbone, pattern)
        probe(backbone, pattern)
    add_lora(backbone, config["lora"], stream_seed(config["seed"], "adapter"))
    return backbone
