"""Each distinct text is embedded once per evaluation, however many tasks ask for it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from records.errors import UserError

CACHE_BYTES = 2 * 2**30  # older embeddings are let go beyond this (a hub corpus of millions of texts)


class Meter(Protocol):
    """What an encoder has done so far, truncated and repeated texts counted as they were really run."""

    @property
    def texts(self) -> int:
        """Distinct texts."""

    @property
    def tokens(self) -> int:
        """Tokens after truncation."""

    @property
    def seconds(self) -> float:
        """Inside `encode`."""


class Encoder(Protocol):
    """The part of `encoders.text_encoder.TextEncoder` that evaluation uses."""

    fingerprint: str  # sha256 of weights and settings: same fingerprint, same vectors
    settings: dict[str, Any]  # number format, kernel and device, for the record

    @property
    def embedding_dim(self) -> int:
        """E."""

    @property
    def max_length(self) -> int:
        """Tokens; longer texts are cut."""

    @property
    def meter(self) -> Meter:
        """Counters."""

    def encode(
        self, texts: Sequence[str], instruction: str = "", progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Return [N, E] float32."""


class EmbeddingCache:
    """Embeddings of one encoder by (instruction, text), kept in memory up to `max_bytes`, oldest out first."""

    def __init__(self, encoder: Encoder, max_bytes: int = CACHE_BYTES) -> None:
        self.encoder = encoder
        self.max_bytes = max_bytes
        self._rows: dict[tuple[str, str], np.ndarray] = {}
        self._bytes = 0

    def embed(
        self, texts: Sequence[str], instruction: str = "", progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Return [N, E] float32, row i for `texts[i]`.

        Raises `UserError`, naming the text, where the encoder gives NaN or infinity.
        """
        wanted = list(dict.fromkeys(texts))
        found = {text: row for text in wanted if (row := self._rows.get((instruction, text))) is not None}
        new = [text for text in wanted if text not in found]
        if new:
            vectors = np.ascontiguousarray(self.encoder.encode(new, instruction, progress), dtype=np.float32)
            _refuse_nan(new, vectors)
            found.update(zip(new, vectors, strict=True))
            self._keep(instruction, new, vectors)
        if not texts:
            return np.zeros((0, self.encoder.embedding_dim), dtype=np.float32)
        return np.stack([found[text] for text in texts])

    def _keep(self, instruction: str, texts: Sequence[str], vectors: np.ndarray) -> None:
        if vectors.nbytes > self.max_bytes:
            return
        for text, row in zip(texts, vectors, strict=True):
            self._rows[instruction, text] = row.copy()  # a copy, so that no row holds the whole block in memory
        self._bytes += vectors.nbytes
        while self._bytes > self.max_bytes:
            self._bytes -= self._rows.pop(next(iter(self._rows))).nbytes


def _refuse_nan(texts: Sequence[str], vectors: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise UserError(
            f"The model gives NaN or infinity for {bad.size} of {len(texts)} texts, the first: {texts[bad[0]][:80]!r}. "
            "Train it again with a smaller learning rate, or in fp32."
        )
