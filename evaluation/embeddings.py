"""Each distinct text is embedded once per (encoder, instruction), whatever task or command asks for it.

<cache_dir>/embeddings/<fingerprint>/<identity>/<writer>.vectors   float32 rows [N, E]
                                           .../<writer>.keys      a key of 16 bytes for each row
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from records.files import of_value, write_json

KEY_BYTES = 16
KEPT_SECONDS = 30.0  # between two times that rows are made safe: what a kill costs
ALL = slice(None)


class Encoder(Protocol):
    """The part of `encoders.text_encoder.TextEncoder` that evaluation uses.

    fingerprint: sha256 of weights and settings: same fingerprint, same vectors. settings: number format, kernel and
    device, for the record. max_length: tokens after which texts are cut. meter: counters texts, tokens and seconds.
    """

    fingerprint: str
    settings: dict[str, Any]
    meter: Any

    @property
    def embedding_dim(self) -> int: ...  # E
    @property
    def max_length(self) -> int: ...

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32) until all are done; `texts` are distinct."""


def keys_of(instruction: str, texts: Sequence[str]) -> list[bytes]:
    """Return the first 16 bytes of the sha256 of the instruction, its length before it, and each text."""
    start = hashlib.sha256(f"{len(instruction)} {instruction}".encode())
    keys = []
    for text in texts:
        digest = start.copy()
        digest.update(text.encode())
        keys.append(digest.digest()[:KEY_BYTES])
    return keys


class EmbeddingStore:
    """The vectors of one encoder in `folder`, `width` floats each; folder None: a temporary one.

    Each process appends to files of its own, so that commands side by side need no lock. Keys are written after their
    rows have reached the disk: a row without key does not count, so a kill leaves nothing half-written.
    """

    def __init__(self, folder: Path | None, width: int) -> None:
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory()  # goes with this object
            folder = Path(self._temporary.name)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.width = folder, width
        self._places: dict[bytes, tuple[Path, int]] = {}  # key -> file, row
        for path in sorted(folder.glob("*.keys")):
            keys = path.read_bytes()
            for row in range(len(keys) // KEY_BYTES):
                self._places[keys[row * KEY_BYTES : (row + 1) * KEY_BYTES]] = path.with_suffix(".vectors"), row
        self._own = folder / f"{time.time_ns():x}-{os.getpid()}.vectors"
        self._files: tuple[IO[bytes], IO[bytes]] | None = None
        self._rows, self._waiting, self._since = 0, list[bytes](), 0.0

    def lacking(self, keys: Sequence[bytes]) -> list[int]:
        """Return the places in `keys` of those that are not here."""
        return [i for i, key in enumerate(keys) if key not in self._places]

    def add(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Append rows. vectors: [n, E] float32."""
        if self._files is None:
            self._files = self._own.open("wb"), self._own.with_suffix(".keys").open("wb")
        self._files[0].write(np.ascontiguousarray(vectors, dtype=np.float32).data)
        for key in keys:
            self._places[key] = self._own, self._rows
            self._rows += 1
        self._waiting += keys
        if time.monotonic() - self._since > KEPT_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the keys of the rows that were added."""
        if self._files and self._waiting:
            self._files[0].flush()
            os.fsync(self._files[0].fileno())
            self._files[1].write(b"".join(self._waiting))
            self._files[1].flush()
        self._waiting, self._since = [], time.monotonic()

    def read(self, keys: Sequence[bytes], columns: slice = ALL) -> np.ndarray:
        """Return [N, columns] float32, row i for `keys[i]`; all are here."""
        of_file: dict[Path, list[tuple[int, int]]] = {}
        for i, key in enumerate(keys):
            path, row = self._places[key]
            of_file.setdefault(path, []).append((i, row))
        out = np.empty((len(keys), len(range(self.width)[columns])), dtype=np.float32)
        for path, pairs in of_file.items():
            places, rows = map(list, zip(*pairs, strict=True))
            whole = path.stat().st_size // (4 * self.width)
            out[places] = np.memmap(path, np.float32, "r", shape=(whole, self.width))[rows, columns]
        return out


def open_store(encoder: Encoder, cache_dir: Path | None) -> EmbeddingStore:
    """Return the store of this encoder's vectors below `cache_dir`; None: a temporary one.

    The identity has all else that can move a bit of a vector: number formats, kernel, device, threads, versions, code.
    """
    if cache_dir is None:
        return EmbeddingStore(None, encoder.embedding_dim)
    from encoders.identity import sources, versions  # which need torch; here an encoder is loaded already

    identity = {
        "fingerprint": encoder.fingerprint,
        "settings": encoder.settings,
        "sources": sources(),
        "versions": versions("tokenizers"),  # the key of a vector is its text, so tokens matter here
    }
    folder = cache_dir / "embeddings" / encoder.fingerprint[:24] / of_value(identity)[:12]
    if not (folder / "identity.json").is_file():
        write_json(folder / "identity.json", identity)
    return EmbeddingStore(folder, encoder.embedding_dim)


@dataclass
class Embeddings:
    """The vectors of an encoder, or some columns of them, looked up in a store and computed where they are missing.

    fingerprint: of the encoder that has these columns alone. unit: vectors are scaled to unit length again, as a
    prefix needs it. whose: what an error calls the encoder.
    """

    encoder: Encoder
    store: EmbeddingStore
    fingerprint: str
    columns: slice = field(default_factory=lambda: ALL)
    unit: bool = False
    whose: str = "The model"

    @classmethod
    def of(cls, encoder: Encoder, cache_dir: Path | None = None) -> "Embeddings":
        """Return the whole vectors of an encoder."""
        return cls(encoder, open_store(encoder, cache_dir), encoder.fingerprint)

    @property
    def embedding_dim(self) -> int:
        """E: the width of these vectors."""
        return len(range(self.encoder.embedding_dim)[self.columns])

    def embed(
        self, texts: Sequence[str], instruction: str = "", progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Return [N, E] float32, row i for `texts[i]`. progress: called with the number of texts of each chunk.

        Raises `UserError`, naming the text, where the encoder gives NaN or infinity.
        """
        from encoders.text_encoder import refuse_nonfinite  # which needs torch

        distinct = list(dict.fromkeys(texts))
        keys = dict(zip(distinct, keys_of(instruction, distinct), strict=True))
        lacking = [distinct[i] for i in self.store.lacking(list(keys.values()))]
        try:
            for indices, vectors in self.encoder.parts(lacking, instruction) if lacking else ():
                refuse_nonfinite([lacking[i] for i in indices], vectors, self.whose, settings=self.encoder.settings)
                self.store.add([keys[lacking[i]] for i in indices], vectors)
                if progress:
                    progress(len(indices))
        finally:
            self.store.flush()
        vectors = self.store.read([keys[text] for text in texts], self.columns)
        if not self.unit:
            return vectors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(norms, np.finfo(np.float32).tiny)


_shared: dict[str, Embeddings] = {}  # of the one encoder that candidates share at the moment


def shared(what: Any, load: Callable[[], Encoder], cache_dir: Path | None) -> Embeddings:
    """Return the vectors of the encoder that `load` gives for `what` (a JSON value); the one before it is let go."""
    key = of_value([what, str(cache_dir)])
    if key not in _shared:
        let_go()
        _shared[key] = Embeddings.of(load(), cache_dir)
    return _shared[key]


def let_go() -> None:
    """Give up the encoder that was shared last, so that its model leaves room for another."""
    _shared.clear()
