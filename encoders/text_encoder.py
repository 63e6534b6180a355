"""Texts in, vectors out, for evaluation: each distinct text once, longest first, under a token budget."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from encoders.chunks import by_token_budget
from encoders.encoder import Encoder
from encoders.rows import is_unpadded
from encoders.tokens import TextTokenizer

WINDOW = 32_768  # texts tokenised and sorted at a time, so that a corpus of millions is not held twice


@dataclass
class Meter:
    """What encoding has cost so far; texts and tokens count what was really run, not repeats."""

    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0


class TextEncoder:
    """An encoder with its tokenizer. Same `fingerprint` (weights and settings), same vectors."""

    def __init__(self, encoder: Encoder, tokenizer: TextTokenizer, fingerprint: str, token_budget: int) -> None:
        self.encoder, self.tokenizer, self.fingerprint = encoder, tokenizer, fingerprint
        self.token_budget = token_budget
        self.device = next(encoder.backbone.parameters()).device
        self.settings = {
            "compute": str(encoder.compute).removeprefix("torch."),
            "weights": str(encoder.backbone.dtype).removeprefix("torch."),
            "kernel": encoder.backbone.config._attn_implementation,
            "device": self.device.type,
            "threads": torch.get_num_threads(),
        }
        self.meter = Meter()

    @property
    def embedding_dim(self) -> int:
        """E."""
        return self.encoder.pooler.embedding_dim

    @property
    def max_length(self) -> int:
        """Tokens of a text, BOS and EOS included; what is longer is cut."""
        return self.tokenizer.max_length

    def encode(
        self, texts: Sequence[str], instruction: str = "", progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Return [N, E] float32, in the order of `texts`; `progress` is told the number of texts done.

        Raises `UserError` for an empty text.
        """
        start = time.perf_counter()
        training = self.encoder.training
        self.encoder.eval()  # dropout off, also where a run in training is validated
        place: dict[str, int] = {}
        for text in texts:
            place.setdefault(text, len(place))
        distinct = list(place)
        vectors = np.empty((len(distinct), self.embedding_dim), dtype=np.float32)
        for offset in range(0, len(distinct), WINDOW):
            self._window(distinct[offset : offset + WINDOW], instruction, vectors[offset : offset + WINDOW], progress)
        self.encoder.train(training)
        self.meter.texts += len(distinct)
        self.meter.seconds += time.perf_counter() - start
        return vectors[[place[t] for t in texts]]

    def _window(
        self, texts: list[str], instruction: str, out: np.ndarray, progress: Callable[[int], None] | None
    ) -> None:
        rows = self.tokenizer(texts, instruction)
        lengths = [len(r) for r in rows]
        self.meter.tokens += sum(lengths)
        for chunk in by_token_budget(lengths, self.token_budget, padded=not is_unpadded(self.encoder.backbone)):
            batch = self.tokenizer.batch([rows[i] for i in chunk]).to(self.device)
            with torch.inference_mode():
                out[chunk] = self.encoder(batch).cpu().numpy()
            if progress:
                progress(len(chunk))
