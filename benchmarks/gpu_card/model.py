"""A decoder of a published shape with random weights, made on the card itself: no hub, no copy on the CPU."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModel, PreTrainedModel

from cli.compose import composed, plain
from encoders.attention.kernels import kernel_of
from encoders.attention.pattern import pattern_of
from encoders.attention.probe import probe
from encoders.attention.switch import set_attention
from encoders.attention.unpadded import UNPADDED
from encoders.backbone import load_tokenizer, shape_of
from encoders.encoder import Encoder
from encoders.lora import add_lora
from encoders.precision import resolve_precision
from encoders.tokens import TextTokenizer, Tokens
from poolers.shared.base import EOS, TEXT, Pooler
from records.streams import stream_seed

MODELS = ("qwen2_0_5b", "mistral_7b")
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
SMALL |= {"intermediate_size": 96, "vocab_size": 8192}
SMALL_WORDS = ("trainer.global_batch_size=8", "max_length=48", "token_budget=128", "trainer.chunk_size=4")


def card_config(model: str, pooler: str, attn: str, small: bool = False) -> dict[str, Any]:
    """The configuration of a cell of experiment=paper/<model>; `small`: two narrow layers, eight queries per batch."""
    words = [f"experiment=paper/{model}", f"pooler={pooler}", f"attn={attn}"]
    if small:
        words += [f"model.architecture.{key}={value}" for key, value in SMALL.items()]
        words += [*SMALL_WORDS, "head.num_queries=8", "head.num_heads=4"]
    return plain(composed("train", words))


@dataclass
class Card:
    """A device with its clock and its memory meter. A CPU has no meter of its own: its bytes are None."""

    device: torch.device

    @property
    def is_gpu(self) -> bool:
        """Return whether the meter is there."""
        return self.device.type == "cuda"

    @property
    def name(self) -> str:
        """Of the card."""
        return torch.cuda.get_device_name(self.device) if self.is_gpu else "cpu"

    def wait(self) -> None:
        """Until all that was started is done; only then a clock says something."""
        if self.is_gpu:
            torch.cuda.synchronize(self.device)

    def seconds(self, work: Callable[[], object]) -> float:
        """Seconds that `work` takes."""
        self.wait()
        start = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - start

    def forget_peak(self) -> None:
        """Give unused memory back and measure the peak anew."""
        if self.is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)

    @property
    def peak_bytes(self) -> int | None:
        """Largest allocation since `forget_peak`."""
        return torch.cuda.max_memory_allocated(self.device) if self.is_gpu else None

    @property
    def held_bytes(self) -> int | None:
        """Bytes that are allocated now."""
        return torch.cuda.memory_allocated(self.device) if self.is_gpu else None


def random_backbone(config: dict[str, Any], card: Card) -> PreTrainedModel:
    """Return the frozen decoder of `config` with random weights and LoRA; both attentions are proved on it."""
    precision = resolve_precision(config["precision"], card.device)
    torch.manual_seed(stream_seed(config["seed"], "random model"))
    with torch.device(card.device):
        shape = shape_of(config["model"])
        kernel = kernel_of(config["model"], shape)
        backbone = AutoModel.from_config(shape, dtype=precision.weights, attn_implementation=kernel)
    backbone.requires_grad_(False).eval()
    for name in ("causal", "bi"):
        pattern = pattern_of({"name": name})
        set_attention(backbone, pattern)
        probe(backbone, pattern)
    add_lora(backbone, config["lora"], stream_seed(config["seed"], "adapter"))
    return backbone


Config = dict[str, Any]
EXECUTIONS = ("padded", UNPADDED)  # how texts can be run; `make_encoder` says how each is asked for
OWN_IDS = 8  # the ids below are special in the embedded tokenizer


def make_encoder(execution: str, backbone: PreTrainedModel, pooler: Pooler, config: Config, card: Card) -> Encoder:
    """The one place where padded and unpadded execution are told apart."""
    backbone.set_attn_implementation(UNPADDED if execution == UNPADDED else "sdpa")
    compute = resolve_precision(config["precision"], card.device).compute
    return Encoder(backbone, pooler, config["pooler"]["normalize"], compute)


@dataclass(frozen=True)
class Cell:
    """pooler x attn in one execution. tf32: whether the head's float32 products may use the card's TF32 units."""

    pooler: str
    attn: str
    execution: str = "padded"
    tf32: bool = False

    @property
    def name(self) -> str:
        """In tables."""
        return f"{self.pooler} x {self.attn}, {self.execution}" + (", head in tf32" if self.tf32 else "")


@dataclass(frozen=True)
class Texts:
    """One turn's work: tokenised texts, and how many the whole batch has of which they are a part."""

    rows: list[Tokens]
    whole: int

    @classmethod
    def of(cls, lengths: Sequence[int], whole: int, vocabulary: int) -> "Texts":
        """Texts of `lengths` with ids drawn at random."""
        draw = torch.Generator().manual_seed(sum(lengths))
        ids = [torch.randint(OWN_IDS, vocabulary, (n,), generator=draw).tolist() for n in lengths]
        return cls([Tokens(row, [TEXT] * (len(row) - 1) + [EOS]) for row in ids], whole)


class Prepared(TextTokenizer):
    """Gives prepared rows for their numbers: no text is tokenised while the card is timed."""

    def __init__(self, config: Config) -> None:
        embedded = {"path": "assets/tiny", "trust_remote_code": False}
        super().__init__(load_tokenizer(embedded), config["max_length"], config["padding_side"])
        self.rows: list[Tokens] = []

    def __call__(self, texts: Sequence[str], instruction: str | None = None) -> list[Tokens]:
        """The rows whose numbers `texts` are."""
        return [self.rows[int(text)] for text in texts]
