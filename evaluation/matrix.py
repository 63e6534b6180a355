"""A float32 matrix that grows by blocks of rows; a large one lies in a file without a name."""

import tempfile
from pathlib import Path
from typing import IO

import numpy as np

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
