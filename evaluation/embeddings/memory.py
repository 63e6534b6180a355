"""Embeddings kept in memory, as long as the command runs."""

import numpy as np

MEMORY_BYTES = 2 * 2**30  # older embeddings are let go beyond this (a hub corpus of millions of texts)


class EmbeddingMemory:
    """Rows by key, up to `max_bytes`, oldest out first."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self.max_bytes = max_bytes
        self._rows: dict[bytes, np.ndarray] = {}
        self._bytes = 0

    def read(self, keys: np.ndarray, out: np.ndarray) -> np.ndarray:
        """See `Store`."""
        found = np.zeros(len(keys), dtype=bool)
        for i, key in enumerate(keys.tolist()):
            row = self._rows.get(key)
            if row is not None:
                out[i], found[i] = row, True
        return found

    def lacks(self, keys: np.ndarray) -> np.ndarray:
        """See `Store`."""
        return np.array([key not in self._rows for key in keys.tolist()], dtype=bool)

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """See `Store`."""
        for key, row in zip(keys.tolist(), vectors, strict=True):
            if key not in self._rows:
                self._rows[key] = row.copy()  # a copy, so that no row holds the whole block in memory
                self._bytes += row.nbytes
        while self._bytes > self.max_bytes:
            self._bytes -= self._rows.pop(next(iter(self._rows))).nbytes

    def flush(self) -> None:
        """See `Store`."""
