"""Stores of an encoder's vectors: <cache_dir>/embeddings/<folder of the encoder>, or memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evaluation.embeddings.on_disk import EmbeddingShards
from records.atomic import write_json
from records.fingerprint import of_value

FORMAT = 1  # of the files
FOLDER = "embeddings"
MEMORY_BYTES = 2 * 2**30  # older embeddings are let go beyond this (a hub corpus of millions of texts)


class Meter(Protocol):
    """Counters of an encoder's work; truncated and repeated texts count as they were really run."""

    texts: int  # distinct ones
    tokens: int  # after truncation
    seconds: float  # inside `encode`


class Encoder(Protocol):
    """The part of `encoders.text_encoder.TextEncoder` that evaluation uses."""

    fingerprint: str  # sha256 of weights and settings: same fingerprint, same vectors
    settings: dict[str, Any]  # number format, kernel and device, for the record

    @property
    def embedding_dim(self) -> int: ...  # E
    @property
    def max_length(self) -> int: ...  # tokens; longer texts are cut
    @property
    def meter(self) -> Meter: ...
    @property
    def sources(self) -> str: ...  # sha256 of the code that makes the vectors

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32) until all are done; `texts` are distinct."""


class Store(Protocol):
    """The place of one encoder's embeddings, by key."""

    def read(self, keys: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Put what is here into its rows of `out` [N, E]; return [N] bool: which rows."""

    def lacks(self, keys: np.ndarray) -> np.ndarray:
        """Return [N] bool: which keys are not here, as far as is known without looking at other processes' work."""

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Take rows; they may wait for `flush`."""

    def flush(self) -> None:
        """Keep what waits."""


class EmbeddingMemory:
    """A `Store` as long as the command runs: rows by key, up to `max_bytes`, oldest out first."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self.max_bytes = max_bytes
        self._rows: dict[bytes, np.ndarray] = {}
        self._bytes = 0

    def read(self, keys: np.ndarray, out: np.ndarray) -> np.ndarray:
        stored = ~self.lacks(keys)
        for i in np.flatnonzero(stored):
            out[i] = self._rows[keys[i]]
        return stored

    def lacks(self, keys: np.ndarray) -> np.ndarray:
        return np.array([key not in self._rows for key in keys.tolist()], dtype=bool)

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        for key, row in zip(keys.tolist(), vectors, strict=True):
            if key not in self._rows:
                self._rows[key] = row.copy()  # a copy, so that no row holds the whole block in memory
                self._bytes += row.nbytes
        while self._bytes > self.max_bytes:
            self._bytes -= self._rows.pop(next(iter(self._rows))).nbytes

    def flush(self) -> None:
        """Nothing waits."""


def open_store(encoder: Encoder, cache_dir: Path | None) -> Store:
    """Return the store of this encoder's vectors below `cache_dir`; None: one in memory.
    The folder is <cache_dir>/embeddings/<fingerprint>/<the rest that can move a bit of a vector>: number formats,
    kernel, device, threads, versions and the code itself (what `encoders.identity` says of states, and of the pooler).
    It may be deleted at any time when no evaluation runs."""
    if cache_dir is None:
        return EmbeddingMemory()
    from encoders.identity import versions  # which needs torch; here an encoder is loaded already

    identity = {
        "format": FORMAT,
        "fingerprint": encoder.fingerprint,
        "settings": encoder.settings,
        "sources": encoder.sources,
        "versions": versions("tokenizers"),  # the key of a vector is its text, so tokens matter here
    }
    folder = cache_dir / FOLDER / encoder.fingerprint[:24] / of_value(identity)[:12]
    if not (folder / "identity.json").is_file():
        write_json(folder / "identity.json", identity)
    return EmbeddingShards(folder, encoder.embedding_dim)
