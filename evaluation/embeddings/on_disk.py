"""Embeddings kept on disk: memory-mapped shards, whole or absent, so that a kill costs half a minute at most."""

import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from cli.errors import UserError
from records.atomic import appearing

KEY = np.dtype("S16")


def keys_of(instruction: str, texts: Sequence[str]) -> np.ndarray:
    """Return [N] keys: the first 16 bytes of the sha256 of the instruction, its length before it, and the text."""
    start = hashlib.sha256(f"{len(instruction)} {instruction}".encode())
    digests = []
    for text in texts:
        digest = start.copy()
        digest.update(text.encode())
        digests.append(digest.digest()[:16])
    return np.frombuffer(b"".join(digests), dtype=KEY)


class KeyIndex:
    """Key -> place, in sorted arrays that are merged when they are of like size, so few of them are searched."""

    def __init__(self) -> None:
        self._levels: list[tuple[np.ndarray, np.ndarray]] = []  # (keys, places), large ones first

    def add(self, keys: np.ndarray, places: np.ndarray) -> None:
        """Add entries. keys: [N]; places: [N] int64, not negative. Of a key that is there already, any place counts."""
        while self._levels and len(self._levels[-1][0]) <= 2 * len(keys):
            level = self._levels.pop()
            keys, places = (np.concatenate(pair) for pair in zip(level, (keys, places), strict=True))
        order = np.argsort(keys, kind="stable")
        self._levels.append((keys[order], places[order]))

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return [N] int64 places, -1 for a key that is not here."""
        positions = np.full(len(keys), -1, dtype=np.int64)
        for known, places in self._levels:
            if len(known):
                at = np.searchsorted(known, keys).clip(max=len(known) - 1)
                hit = known[at] == keys
                positions[hit] = places[at[hit]]
        return positions


SHARD_BYTES = 64 * 2**20  # of vectors that wait in memory
SHARD_SECONDS = 30.0  # for which they wait: what a killed process loses
KEYS, VECTORS = "keys.npy", "vectors.npy"
OPEN_MAPS = 256  # each holds a file descriptor
LEFT_BEHIND = 24 * 3600  # seconds after which a draft belongs to a process that was killed
ROW_BITS = 32  # of a place: shard number above, row below


class EmbeddingShards:
    """A `Store` of the embeddings of one encoder in `folder`, `width` floats each.
    A shard is a folder with `keys.npy` [N] and `vectors.npy` [N, E] float32, named by its keys and never changed. It
    appears by one rename; where two processes write the same one, the first stays. The vectors have a sum, which is
    compared when a shard is first read. A text that two processes embedded in different company is in two shards, and
    either vector counts."""

    def __init__(self, folder: Path, width: int) -> None:
        self.folder, self.width = folder, width
        self._index = KeyIndex()
        self._shards: list[Path] = []
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._since = 0.0
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob(".*"):
            if draft.is_dir() and time.time() - draft.stat().st_mtime > LEFT_BEHIND:
                shutil.rmtree(draft, ignore_errors=True)

    def read(self, keys: np.ndarray, out: np.ndarray) -> np.ndarray:
        self._take_up()
        places = self._index.find(keys)
        shards = places >> ROW_BITS
        for shard in np.unique(shards[places >= 0]):
            here = np.flatnonzero(shards == shard)
            vectors = self._shards[shard] / VECTORS
            out[here] = _mapped(vectors)[places[here] & (2**ROW_BITS - 1)]
        return places >= 0

    def lacks(self, keys: np.ndarray) -> np.ndarray:
        return self._index.find(keys) < 0

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        if not len(keys):
            return
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append((keys, vectors))
        if sum(v.nbytes for _, v in self._waiting) >= SHARD_BYTES or time.monotonic() - self._since >= SHARD_SECONDS:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        keys, vectors = (np.concatenate(part) for part in zip(*self._waiting, strict=True))
        self._waiting = []
        shard = self.folder / _name(keys)
        if not shard.is_dir():
            with appearing(shard) as draft:
                draft.mkdir()
                _write_array(draft / KEYS, keys)
                _write_array(draft / VECTORS, vectors)
        self._take_up()

    def _take_up(self) -> None:
        """Enter the shards that appeared since the last look, those of other processes among them."""
        with os.scandir(self.folder) as entries:
            names = {e.name for e in entries if e.is_dir() and not e.name.startswith(".")}
        keys, places = [], []
        for name in sorted(names - {shard.name for shard in self._shards}):
            keys.append(self._keys(self.folder / name))
            places.append((len(self._shards) << ROW_BITS) + np.arange(len(keys[-1])))
            self._shards.append(self.folder / name)
        if keys:
            self._index.add(np.concatenate(keys), np.concatenate(places))

    def _keys(self, shard: Path) -> np.ndarray:
        try:
            keys = np.load(shard / KEYS)
            vectors = np.load(shard / VECTORS, mmap_mode="r")
            if _name(keys) != shard.name or vectors.shape != (len(keys), self.width) or vectors.dtype != np.float32:
                raise ValueError(f"{keys.shape} {keys.dtype} keys, {vectors.shape} {vectors.dtype} vectors")
        except (OSError, ValueError) as error:
            raise UserError(f"The cached embeddings in {shard} are damaged ({error}). Delete that folder.") from error
        return keys


def _name(keys: np.ndarray) -> str:
    return hashlib.sha256(keys.astype(KEY).tobytes()).hexdigest()[:24]


def _write_array(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:  # not np.save, which hides that the disk is full
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(np.ascontiguousarray(array).data)


@lru_cache(maxsize=OPEN_MAPS)
def _mapped(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r")
