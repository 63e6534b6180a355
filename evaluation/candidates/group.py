"""The readings of one checkpoint while they are scored: what one of them lacks is computed for all of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from encoders.finite import REMEDY, refuse_nonfinite
from evaluation.candidates.candidates import Candidate
from evaluation.embeddings.cache import Meter, Store
from evaluation.embeddings.memory import MEMORY_BYTES, EmbeddingMemory
from evaluation.embeddings.on_disk import keys_of
from evaluation.embeddings.store import open_store
from records.fingerprint import of_value

Config = dict[str, Any]


class ReadingGroup:
    """`encoders`: reading -> what evaluation takes for an encoder of its own; the meter is shared."""

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
                    refuse_nonfinite(texts, indices, vectors[name], f"Reading {name}", remedy)
                    lacking = store.lacks(keys[indices])
                    store.add(keys[indices][lacking], vectors[name][lacking])
                yield indices, vectors[reading]
        finally:
            for store in others.values():
                store.flush()


class ReadingEncoder:
    """One reading of a group; see `evaluation.embeddings.cache.Encoder`."""

    def __init__(self, group: ReadingGroup, name: str) -> None:
        self.group, self.name = group, name
        self.fingerprint = group.loaded.fingerprints[name]
        self.settings: dict[str, Any] = group.loaded.text_encoder.settings

    @property
    def embedding_dim(self) -> int:
        """E."""
        return self.group.loaded.readings.readings[self.name].pooler.embedding_dim

    @property
    def max_length(self) -> int:
        """Tokens; longer texts are cut."""
        return self.group.loaded.text_encoder.max_length

    @property
    def meter(self) -> Meter:
        """Counters of the group."""
        return self.group.loaded.text_encoder.meter

    @property
    def sources(self) -> str:
        """sha256 of the code that makes the vectors."""
        from encoders.identity import sources

        return sources(self.group.loaded.readings.readings[self.name].pooler)

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32)."""
        return self.group.parts(self.name, texts, instruction)


_held: dict[str, ReadingGroup] = {}  # the group that is being scored: its readings follow one another


def group_of(of: Candidate, poolers: dict[str, Config]) -> ReadingGroup:
    """Return the group of a checkpoint's readings, loaded with the first of them; the one before it is let go."""
    key = of_value([str(of.folder), str(of.results), of.manifest["config"], poolers])
    if key not in _held:
        from encoders.loading import load_readings

        _held.clear()
        _held[key] = ReadingGroup(load_readings(of.manifest["config"], of.folder, poolers))
    return _held[key]
