"""What a cell is run on: texts of given lengths, and an encoder with padding or without."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from benchmarks.gpu_card.model import Card
from encoders.attention.unpadded import UNPADDED
from encoders.backbone import load_tokenizer
from encoders.encoder import Encoder
from encoders.precision import resolve_precision
from encoders.tokens import TextTokenizer, Tokens
from poolers.shared.base import EOS, TEXT, Pooler

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
