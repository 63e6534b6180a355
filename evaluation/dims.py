"""One encoder, several dimensions: vectors encoded once, then cut to a prefix and brought back to unit length."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.embedding_cache import EmbeddingCache, Encoder
from records.fingerprint import of_value
from records.limits import fit_width


@dataclass(frozen=True)
class Spent:
    """What an encoder has done since it was asked for the first time."""

    texts: int
    tokens: int
    seconds: float


class Prefix:
    """The first `dim` entries of an encoder's vectors, as an encoder. whole: the vectors, shared with its siblings.

    Each text is encoded once for all siblings as long as `EmbeddingCache` keeps it.
    """

    def __init__(self, whole: EmbeddingCache, dim: int) -> None:
        self.whole, self.embedding_dim = whole, dim
        self.fingerprint = of_value([whole.encoder.fingerprint, "prefix", dim])
        self.settings: dict[str, Any] = whole.encoder.settings
        self._before = self._count()

    def _count(self) -> tuple[int, int, float]:
        meter = self.whole.encoder.meter
        return meter.texts, meter.tokens, meter.seconds

    @property
    def max_length(self) -> int:
        """Tokens; longer texts are cut."""
        return self.whole.encoder.max_length

    @property
    def meter(self) -> Spent:
        """What was encoded for this dimension: nothing, where a sibling came first."""
        (texts, tokens, seconds), before = self._count(), self._before
        return Spent(texts - before[0], tokens - before[1], seconds - before[2])

    def encode(
        self, texts: Sequence[str], instruction: str = "", progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Return [N, dim] float32 of unit length. Raises `UserError` for NaN."""
        cut = self.whole.embed(texts, instruction, progress)[:, : self.embedding_dim]
        return cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), np.finfo(np.float32).tiny)


class Siblings:
    """The encoder that the dimensions of one run share, from the first of them to the last."""

    def __init__(self, dims: Sequence[int]) -> None:
        self.dims = list(dims)
        self._whole: EmbeddingCache | None = None

    def load(self, dim: int, load: Callable[[], Encoder]) -> Prefix:
        """Return the encoder of `dim`. Raises `UserError` for more entries than a vector has."""
        whole = self._whole or EmbeddingCache(load())
        fit_width("evaluation.dims", self.dims, whole.encoder.embedding_dim)
        self._whole = whole if dim != self.dims[-1] else None  # the last one needs no model kept for others
        return Prefix(whole, dim)
