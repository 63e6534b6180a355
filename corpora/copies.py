"""Words of texts, in scripts with and without spaces; copies: texts of the same words, or of most of their 5-grams.

<cache_dir>/training_texts/<sha256 of the data>.npy   64-bit digests of the distinct texts of training
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cli.errors import reading
from corpora.triples import Triple
from records.earlier_runs import data_parts
from records.files import replacing

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")  # a letter of a script without spaces is a word
ASCII_WORD = re.compile(r"[a-z0-9]+")  # the same words, of ASCII text
MARKS = rf"[^\w\s{UNSPACED}]*"
SPACED = re.compile(rf"{MARKS}[{UNSPACED}]{MARKS}|[^\s{UNSPACED}]+")  # with the punctuation around it
FOLDER = "training_texts"
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
