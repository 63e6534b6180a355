"""Each distinct text is embedded once per (encoder, instruction), however many tasks ask for it."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from encoders.finite import refuse_nonfinite
from evaluation.embeddings.on_disk import keys_of
from evaluation.embeddings.store import EmbeddingMemory, Encoder, Store


class Window(NamedTuple):
    """`texts` are distinct, in the order of their first occurrence; `rows`: [N] the place in `texts` of each text."""

    texts: list[str]
    rows: np.ndarray


def windows(batches: Iterable[Sequence[str]], most: int) -> Iterator[Window]:
    """Cut `batches` before the text that would be distinct number `most` + 1; a batch is let go when it is read."""
    places: dict[str, int] = {}
    rows: list[int] = []
    for batch in batches:
        for text in batch:
            if len(places) == most and text not in places:
                yield Window(list(places), np.array(rows))
                places, rows = {}, []
            rows.append(places.setdefault(text, len(places)))
    if rows:
        yield Window(list(places), np.array(rows))


IN_MEMORY = 2**30  # bytes; what is larger is memory-mapped


class Matrix:
    """[N, E], N not known before. folder: where the file of a large one lies; None keeps all sizes in memory."""

    def __init__(self, width: int, folder: Path | None = None) -> None:
        self.width, self.folder = width, folder
        self._blocks: list[np.ndarray] = []
        self._file: IO[bytes] | None = None
        self._rows = 0

    def append(self, block: np.ndarray) -> None:
        """Add rows. block: [n, E] float32."""
        self._rows += len(block)
        self._blocks.append(block)
        if self.folder is not None and self._rows * self.width * 4 > IN_MEMORY:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (no name, so no kill leaves it)
            for waiting in self._blocks:
                self._file.write(np.ascontiguousarray(waiting).data)
            self._blocks = []

    def finished(self) -> np.ndarray:
        """Return all rows."""
        if self._file is not None:
            self._file.flush()
            return np.memmap(self._file, dtype=np.float32, mode="r+", shape=(self._rows, self.width))
        if len(self._blocks) == 1:
            return self._blocks[0]
        return np.concatenate([np.zeros((0, self.width), dtype=np.float32), *self._blocks])


WINDOW = 32_768  # distinct texts looked up, and where they are missing sorted by length and encoded, at a time
Progress = Callable[[int], None]


class EmbeddingCache:
    """Embeddings of one encoder, looked up in `store` and computed where they are missing.
    texts: how many distinct ones were found in the store. seconds: spent on looking up and keeping, without encoding.
    folder: where results too large for memory lie. whose: what an error calls the encoder."""

    def __init__(
        self, encoder: Encoder, store: Store | None = None, folder: Path | None = None, whose: str = "The model"
    ) -> None:
        self.encoder, self.folder, self.whose = encoder, folder, whose
        self.store: Store = EmbeddingMemory() if store is None else store
        self.texts, self.seconds = 0, 0.0

    def embed(self, texts: Sequence[str], instruction: str = "", progress: Progress | None = None) -> np.ndarray:
        """Return [N, E] float32, row i for `texts[i]`. Raises as `stream` does."""
        return self.stream([texts], instruction, progress)

    def stream(
        self, batches: Iterable[Sequence[str]], instruction: str = "", progress: Progress | None = None
    ) -> np.ndarray:
        """Return [N, E] float32 for the texts of all batches, of which no more than a window is held at a time.
        progress is told the number of texts done. Raises `UserError`, naming the text, for NaN or infinity."""
        matrix = Matrix(self.encoder.embedding_dim, self.folder)
        for window in windows(batches, WINDOW):
            started, before = time.perf_counter(), self.encoder.meter.seconds
            vectors = self._vectors(window.texts, instruction, progress)
            repeats = len(window.rows) > len(window.texts)
            matrix.append(vectors[window.rows] if repeats else vectors)
            self.seconds += time.perf_counter() - started - (self.encoder.meter.seconds - before)
        return matrix.finished()

    def _vectors(self, texts: list[str], instruction: str, progress: Progress | None) -> np.ndarray:
        """[n, E] of distinct texts."""
        keys = keys_of(instruction, texts)
        vectors = np.empty((len(texts), self.encoder.embedding_dim), dtype=np.float32)
        stored = self.store.read(keys, vectors)
        self.texts += int(stored.sum())
        missing = np.flatnonzero(~stored)
        if not len(missing):
            return vectors
        wanted = [texts[i] for i in missing]
        try:
            for indices, part in self.encoder.parts(wanted, instruction):
                refuse_nonfinite([wanted[i] for i in indices], part, self.whose)
                vectors[missing[indices]] = part
                self.store.add(keys[missing[indices]], part)
                if progress:
                    progress(len(indices))
        finally:
            self.store.flush()
        return vectors
