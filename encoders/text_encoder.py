"""Texts in, vectors out, for evaluation: each distinct text once, longest first, under a token budget."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import torch

from encoders.attention.switch import is_unpadded
from encoders.chunking import BackOff, Chunk
from encoders.encoder import Encoder
from encoders.identity import execution, sources
from encoders.tokens import Batch, TextTokenizer, Tokens

T = TypeVar("T")

WINDOW = 32_768  # texts tokenised and sorted at a time, so that a corpus of millions is not held twice


@dataclass
class Meter:
    """The cost of encoding so far; texts and tokens count what was really run, not repeats."""

    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0


class TextEncoder:
    """An encoder with its tokenizer. Same `fingerprint` (weights and settings), same vectors."""

    def __init__(self, encoder: Encoder, tokenizer: TextTokenizer, fingerprint: str, token_budget: int) -> None:
        self.encoder, self.tokenizer, self.fingerprint = encoder, tokenizer, fingerprint
        self.embedding_dim, self.max_length = encoder.pooler.embedding_dim, tokenizer.max_length
        self.back_off = BackOff(token_budget, padded=not is_unpadded(encoder.backbone))
        self.device = next(encoder.backbone.parameters()).device
        self.settings = {
            "compute": str(encoder.compute).removeprefix("torch."),
            "weights": str(encoder.backbone.dtype).removeprefix("torch."),
            **execution(encoder.backbone),
        }
        self.sources = sources()
        self.meter = Meter()

    @property
    def token_budget(self) -> int:
        """Tokens of one forward pass; smaller than configured once memory has run out."""
        return self.back_off.budget

    def encode(self, texts: Sequence[str], instruction: str = "") -> np.ndarray:
        """Return [N, E] float32, in the order of `texts`. Raises `UserError` for an empty text."""
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        vectors = np.empty((len(place), self.embedding_dim), dtype=np.float32)
        for indices, part in self.parts(list(place), instruction):
            vectors[indices] = part
        return vectors[[place[t] for t in texts]]

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield (indices of texts, their [n, E] float32) chunk by chunk, longest first; `texts` are distinct.

        Chunks are cut by a rule that looks only ahead, so that stopped work goes on with the very same numbers.
        """
        return self.run(texts, instruction, lambda batch: self.encoder(batch).cpu().numpy())

    def run(self, texts: Sequence[str], instruction: str, compute: Callable[[Batch], T]) -> Iterator[tuple[Chunk, T]]:
        """As `parts`, with `compute` in place of this encoder's own vectors: several readings of one forward pass."""
        training = self.encoder.training
        self.encoder.eval()  # dropout off, also where a run in training is validated
        try:
            for offset in range(0, len(texts), WINDOW):
                with self._timed():
                    rows = self.tokenizer(texts[offset : offset + WINDOW], instruction)
                for chunk, result in self.back_off.run([len(r) for r in rows], partial(self._computed, compute, rows)):
                    self.meter.texts += len(chunk)
                    self.meter.tokens += sum(len(rows[i]) for i in chunk)
                    yield [offset + i for i in chunk], result
        finally:
            self.encoder.train(training)

    def _computed(self, compute: Callable[[Batch], T], rows: Sequence[Tokens], chunk: Chunk) -> T:
        with self._timed(), torch.inference_mode():
            return compute(self.tokenizer.batch([rows[i] for i in chunk]).to(self.device))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.meter.seconds += time.perf_counter() - start
