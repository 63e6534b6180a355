"""Encoders that share forward passes: the readings of one checkpoint, and the prefixes of one encoder's vectors."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cli.limits import fit_width
from encoders.finite import REMEDY, refuse_nonfinite
from evaluation.embeddings.cache import EmbeddingCache
from evaluation.embeddings.on_disk import keys_of
from evaluation.embeddings.store import MEMORY_BYTES, EmbeddingMemory, Encoder, Store, open_store
from records.fingerprint import of_value

Config = dict[str, Any]


class Prefix:
    """The first `dim` entries of an encoder's vectors, as an `Encoder`. whole: the vectors, shared with its
    siblings.
    Each text is encoded once for all siblings as long as `whole` keeps it; the meter is shared."""

    def __init__(self, whole: EmbeddingCache, dim: int) -> None:
        encoder = whole.encoder
        self.whole, self.embedding_dim = whole, dim
        self.fingerprint = of_value([encoder.fingerprint, "prefix", dim])
        self.settings, self.sources = encoder.settings, encoder.sources
        self.max_length, self.meter = encoder.max_length, encoder.meter

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


class ReadingGroup:
    """The readings of one checkpoint while they are scored: what one of them lacks is computed for all of them.
    `encoders`: reading -> what evaluation takes for an encoder of its own; the meter is shared."""

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded
        self.encoders = {name: ReadingEncoder(self, name) for name in loaded.readings.readings}
        self._stores: dict[str, Store] = {}

    def stores(self, cache_dir: Path | None) -> dict[str, Store]:
        """Return reading -> store, opened once."""
        if not self._stores:
            share = MEMORY_BYTES // len(self.encoders)
            self._stores = {
                name: EmbeddingMemory(share) if cache_dir is None else open_store(encoder, cache_dir)
                for name, encoder in self.encoders.items()
            }
        return self._stores

    def parts(self, reading: str, texts: Sequence[str], instruction: str) -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield the vectors of one reading, chunk by chunk, and put those of the others into their stores."""
        keys = keys_of(instruction, texts)
        others = {name: store for name, store in self._stores.items() if name != reading}
        try:
            for indices, vectors in self.loaded.parts(texts, instruction):
                for name, store in others.items():
                    remedy = f"{REMEDY} Or leave this reading out."
                    refuse_nonfinite([texts[i] for i in indices], vectors[name], f"Reading {name}", remedy)
                    lacking = store.lacks(keys[indices])
                    store.add(keys[indices][lacking], vectors[name][lacking])
                yield indices, vectors[reading]
        finally:
            for store in others.values():
                store.flush()


class ReadingEncoder:
    """One reading of a group, as an `Encoder`."""

    def __init__(self, group: ReadingGroup, name: str) -> None:
        text_encoder, pooler = group.loaded.text_encoder, group.loaded.readings.readings[name].pooler
        self.group, self.name = group, name
        self.fingerprint = group.loaded.fingerprints[name]
        self.settings, self.sources = text_encoder.settings, text_encoder.sources
        self.embedding_dim, self.max_length = pooler.embedding_dim, text_encoder.max_length
        self.meter = text_encoder.meter

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32)."""
        return self.group.parts(self.name, texts, instruction)


_current: dict[str, ReadingGroup] = {}  # the group that is being scored: its readings follow one another


def let_go() -> None:
    """Give up the group that was scored last, so that its model leaves room for another."""
    for group in _current.values():
        group.encoders.clear()  # they and the group hold one another
    _current.clear()


def group_of(folder: Path | None, config: Config, poolers: dict[str, Config], seeds: dict[str, int]) -> ReadingGroup:
    """Return the group of a checkpoint's readings, loaded with the first of them; the one before it is let go.

    seeds: of the readings whose parameters another seed than that of `config` draws.
    """
    key = of_value([str(folder), config, poolers, seeds])
    if key not in _current:
        from encoders.loading import load_readings

        let_go()
        _current[key] = ReadingGroup(load_readings(config, folder, poolers, seeds))
    return _current[key]
