"""Texts of training on disk as digests, by which texts of any task are found again: those with the same words.

<cache_dir>/training_texts/<sha256 of the data>.npy   64-bit digests of the distinct texts
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from cli.errors import reading
from corpora.near_copies import words_of
from corpora.triples import Triple
from records.files import replacing
from records.lineage import data_parts

FOLDER = "training_texts"


def key_of(text: str) -> int:
    """Return a digest of the words of a text. Case, punctuation and spaces do not count; without words they do."""
    words = words_of(text)
    key = " ".join(words) if words else f"\0{text.strip()}"
    return int.from_bytes(blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def place(sha256: str, cache_dir: str | Path) -> Path:
    """Return the file of the digests of the data of that sha256."""
    return Path(cache_dir).expanduser() / FOLDER / f"{sha256}.npy"


def keep_texts(data: Mapping[str, Any], cache_dir: str | Path, examples: Sequence[Triple]) -> None:
    """Write the digests of the texts of each part of a run's data, as a manifest describes them, below `cache_dir`."""
    for source, sha256 in data_parts(data).items():
        file = place(sha256, cache_dir)
        triples = [t for t in examples if not source or t.origin == source]
        if not file.exists():
            write_texts(file, (text for t in triples for text in (t.query, t.positive, *t.negatives)))


def write_texts(file: Path, texts: Iterable[str]) -> None:
    """Write the digests of the distinct texts."""
    keys = np.array(sorted(set(map(key_of, texts))), np.uint64)
    with replacing(file) as draft, draft.open("wb") as opened:
        np.save(opened, keys)


class OverlapCount:
    """Counter of the distinct texts of a task that stand in training texts, batch by batch."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.seen: set[int] = set()
        self.known: set[int] = set()
        for file in files:
            with reading(file, "Delete it; train.py writes it again."):
                self.known.update(np.load(file).tolist())

    def see(self, texts: Iterable[str]) -> None:
        """Count a batch."""
        self.seen.update(map(key_of, texts))

    def counts(self) -> dict[str, int]:
        """Return the number of distinct texts, and of those that stand in the training texts."""
        return {"texts": len(self.seen), "exact": len(self.seen & self.known)}
