"""(instruction, text) -> 128 bits, and an index of millions of them that takes 24 bytes each."""

import hashlib
from collections.abc import Sequence

import numpy as np

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
            held, theirs = self._levels.pop()
            keys, places = np.concatenate([held, keys]), np.concatenate([theirs, places])
        order = np.argsort(keys, kind="stable")
        self._levels.append((keys[order], places[order]))

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return [N] int64 places, -1 for a key that is not here."""
        found = np.full(len(keys), -1, dtype=np.int64)
        for held, places in self._levels:
            if len(held):
                at = np.searchsorted(held, keys).clip(max=len(held) - 1)
                hit = held[at] == keys
                found[hit] = places[at[hit]]
        return found
