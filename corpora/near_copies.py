"""Words of texts, in scripts with and without spaces; near-copies: texts that share most of their word 5-grams."""

import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")  # a letter of a script without spaces is a word
ASCII_WORD = re.compile(r"[a-z0-9]+")  # the same words, of ASCII text
MARKS = rf"[^\w\s{UNSPACED}]*"
SPACED = re.compile(rf"{MARKS}[{UNSPACED}]{MARKS}|[^\s{UNSPACED}]+")  # with the punctuation around it
SHINGLE = 5  # words
SKETCH = 8  # smallest hashes by which candidates meet


def words_of(text: str) -> list[str]:
    """Return the words by which texts are compared: in lower case, without punctuation and underscores."""
    lower = text.lower()
    return (ASCII_WORD if lower.isascii() else WORD).findall(lower)


def word_count(text: str) -> int:
    """Return the number of words between spaces; a letter of a script without spaces is one."""
    return len(SPACED.findall(text))


def first_words(text: str, count: int | None = None) -> str:
    """Return the first `count` of the words that `word_count` counts (None: all), with one space for any number."""
    line = " ".join(text.split())
    ends = [0, *(word.end() for word in islice(SPACED.finditer(line), count))]
    return line[: ends[-1]]


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
    index, kept = NearCopies(threshold), []
    for i, text in enumerate(texts):
        if text not in index:
            index.keep(text)
            kept.append(i)
    return kept
