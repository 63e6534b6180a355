"""Near-copies: texts that share most of their word 5-grams, found by comparing the smallest shingle hashes."""

import zlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from corpora.words import words_of

SHINGLE = 5  # words
SKETCH = 8  # smallest hashes by which candidates meet


def shingles(text: str) -> frozenset[int]:
    """Return the hashes of the word 5-grams of `text` (of the whole text where it has fewer words, or none at all)."""
    words = words_of(text) or [text.strip()]
    grams = (" ".join(words[k : k + SHINGLE]) for k in range(max(1, len(words) - SHINGLE + 1)))
    return frozenset([zlib.crc32(gram.encode("utf-8", "replace")) for gram in grams])


@lru_cache(maxsize=1)  # a text is looked for, then kept
def _sketched(text: str) -> tuple[frozenset[int], list[int]]:
    grams = shingles(text)
    return grams, sorted(grams)[:SKETCH]


class NearCopies:
    """An index of texts that finds whether a new text nearly copies one of them.
    It does where the Jaccard similarity of their shingles reaches `threshold` (Broder 1997, "On the resemblance and
    containment of documents"). Candidates are found by bottom-k sketches: at similarity .5 two of eight hashes fail to
    meet with a probability of about 2^-8; on the docstrings here none did, by an exhaustive search."""

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold
        self._sets: list[frozenset[int]] = []
        self._buckets: dict[int, list[int]] = defaultdict(list)

    def add(self, text: str) -> bool:
        """Add `text`; return False, and leave it out, where it nearly copies a text that is in."""
        if text in self:
            return False
        self.keep(text)
        return True

    def keep(self, text: str) -> None:
        """Add `text` whatever is in: what copies it need not copy the text that it copies."""
        grams, sketch = _sketched(text)
        for key in sketch:
            self._buckets[key].append(len(self._sets))
        self._sets.append(grams)

    def __contains__(self, text: str) -> bool:
        grams, sketch = _sketched(text)
        for other in (self._sets[i] for i in {i for key in sketch for i in self._buckets.get(key, ())}):
            shared = len(grams & other)
            if shared / (len(grams) + len(other) - shared) >= self.threshold:
                return True
        return False


def distinct(texts: Sequence[str], threshold: float = 0.5) -> list[int]:
    """Return the indices of `texts` that copy no earlier one, nearly or exactly."""
    index = NearCopies(threshold)
    return [i for i, text in enumerate(texts) if index.add(text)]
