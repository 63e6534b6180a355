"""One encoder, several dimensions: vectors encoded once, then cut to a prefix and brought back to unit length."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cli.limits import fit_width
from evaluation.embeddings.cache import EmbeddingCache, Encoder, Meter, Store
from evaluation.embeddings.memory import EmbeddingMemory
from evaluation.embeddings.store import open_store
from records.fingerprint import of_value


class Prefix:
    """The first `dim` entries of an encoder's vectors, as an encoder. whole: the vectors, shared with its siblings.

    Each text is encoded once for all siblings as long as `whole` keeps it; the meter is shared.
    """

    def __init__(self, whole: EmbeddingCache, dim: int) -> None:
        self.whole, self.embedding_dim = whole, dim
        self.fingerprint = of_value([whole.encoder.fingerprint, "prefix", dim])
        self.settings: dict[str, Any] = whole.encoder.settings

    @property
    def max_length(self) -> int:
        """Tokens; longer texts are cut."""
        return self.whole.encoder.max_length

    @property
    def meter(self) -> Meter:
        """Counters of the whole encoder."""
        return self.whole.encoder.meter

    @property
    def sources(self) -> str:
        """sha256 of the code that makes the vectors."""
        return self.whole.encoder.sources

    def open_store(self, cache_dir: Path | None) -> Store:
        """Keep the whole vectors below `cache_dir`, and return where the prefixes are kept: in memory."""
        if cache_dir is not None and self.whole.folder is None:
            self.whole.store, self.whole.folder = open_store(self.whole.encoder, cache_dir), cache_dir
        return EmbeddingMemory()

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield all indices and their [n, dim] float32 of unit length, at once. Raises `UserError` for NaN."""
        cut = self.whole.embed(texts, instruction)[:, : self.embedding_dim]
        norms = np.linalg.norm(cut, axis=1, keepdims=True)
        yield list(range(len(texts))), cut / np.maximum(norms, np.finfo(np.float32).tiny)


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
