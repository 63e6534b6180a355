"""Texts of training on disk, in which texts of any task are found again: with the same words, or as near-copies.

<cache_dir>/training_texts/<sha256 of the data>-<version>/   sorted arrays, memory-mapped: they take no memory
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cli.errors import UserError
from corpora.near_copies import SKETCH, grams_of
from corpora.triples import Triple
from corpora.words import words_of
from records.atomic import appearing
from records.fingerprint import refuse_damaged, write_sum
from records.lineage import data_parts

VERSION = 1  # raise with any change of what is found: indexes and counts on disk are keyed by it
FOLDER = "training_texts"
ALIKE = 0.5  # Jaccard similarity of the shingles from which a text is a near-copy, as corpora/near_copies.py has it
ARRAYS = {"exact": np.uint64, "sketches": np.uint64, "shingles": np.uint32, "starts": np.int64}
BLOCK = 4096  # texts, or candidates, that are looked at together
NEAR, EXACT = 1, 2

Keys = NDArray[np.uint64]


class Sketch(NamedTuple):
    """key: digest of the words of a text. grams: hashes of its word 5-grams, sorted; none of a text without words."""

    key: int
    grams: NDArray[np.uint32]


def sketch_of(text: str) -> Sketch:
    """Return what is compared of a text. Case, punctuation and spaces do not count; of a text without words they do."""
    words = words_of(text)
    key = " ".join(words) if words else f"\0{text.strip()}"
    digest = blake2b(key.encode("utf-8", "replace"), digest_size=8).digest()
    grams = grams_of(words) if words else frozenset[int]()
    return Sketch(int.from_bytes(digest, "little"), np.sort(np.fromiter(grams, np.uint32, len(grams))))


def keep_texts(data: Mapping[str, Any], cache_dir: str | Path, read: Callable[[], Iterable[Triple]]) -> None:
    """Write the index of the texts of each part of a run's data that has none below `cache_dir`.

    data: as a manifest describes it. read: the examples of all parts, called where an index is missing. Where one
    cannot be written that is said, and no run is lost for it.
    """
    folders = {source: place(sha256, cache_dir) for source, sha256 in data_parts(data).items()}
    if all(folder.is_dir() for folder in folders.values()):
        return
    examples = list(read())
    for source, folder in folders.items():
        if not folder.is_dir():
            triples = (t for t in examples if not source or t.source.partition("/")[0] == source)
            try:
                write_index(folder, (text for t in triples for text in (t.query, t.positive, *t.negatives)))
            except (OSError, UserError) as error:
                print(f"warning: evaluate.py will not find the training texts again: {error}")


def place(sha256: str, cache_dir: str | Path) -> Path:
    """Return the folder of the index of the data of that digest."""
    return Path(cache_dir).expanduser() / FOLDER / f"{sha256}-{VERSION}"


def write_index(folder: Path, texts: Iterable[str]) -> None:
    """Write the index of `texts`, each distinct one once; where another process was first, its index stays."""
    seen: set[int] = set()
    exact, sketches, starts = array("Q"), array("Q"), array("q", [0])
    with appearing(folder) as draft:
        draft.mkdir()
        with (draft / "shingles").open("wb") as file:
            for text in texts:
                key, grams = sketch_of(text)
                if key in seen:
                    continue
                seen.add(key)
                exact.append(key)
                sketches.extend([gram << 32 | (len(starts) - 1) for gram in grams[:SKETCH].tolist()])
                starts.append(starts[-1] + len(grams))
                file.write(grams.tobytes())
        np.sort(np.frombuffer(exact, np.uint64)).tofile(draft / "exact")
        np.sort(np.frombuffer(sketches, np.uint64)).tofile(draft / "sketches")
        np.frombuffer(starts, np.int64).tofile(draft / "starts")
        for name in ARRAYS:
            write_sum(draft / name)


class TextIndex:
    """An index that `write_index` wrote. Raises `UserError` where a file of it is damaged."""

    def __init__(self, folder: Path) -> None:
        for name in ARRAYS:
            if not (folder / name).is_file():
                raise UserError(f"{folder} lacks the file {name}. Delete that folder; train.py writes it again.")
            refuse_damaged(folder / name, "The training texts")
        read = {name: _opened(folder / name, dtype) for name, dtype in ARRAYS.items()}
        self.exact, self.sketches, self.shingles, self.starts = read.values()

    def find(self, texts: Sequence[Sketch]) -> NDArray[np.uint8]:
        """Return for each text EXACT, NEAR, or 0 where it is not in the index."""
        keys = np.array([text.key for text in texts], np.uint64)
        matches = np.where(_contains(self.exact, keys), EXACT, 0).astype(np.uint8)
        asked = [(i, texts[i].grams[:SKETCH]) for i in np.flatnonzero(matches == 0).tolist() if len(texts[i].grams)]
        if not asked or not len(self.sketches):
            return matches
        low = np.concatenate([grams for _, grams in asked]).astype(np.uint64) << np.uint64(32)
        first = np.searchsorted(self.sketches, low)
        last = np.searchsorted(self.sketches, low | np.uint64(2**32 - 1), "right")
        ends = np.cumsum([len(grams) for _, grams in asked])
        meets = np.add.reduceat(last > first, np.concatenate([[0], ends[:-1]]))
        for k in np.flatnonzero(meets):
            i, grams = asked[k]
            spans = zip(first[ends[k] - len(grams) : ends[k]], last[ends[k] - len(grams) : ends[k]], strict=True)
            met = np.concatenate([self.sketches[a:b] for a, b in spans]) & np.uint64(2**32 - 1)
            if self._is_near(texts[i].grams, met):
                matches[i] = NEAR
        return matches

    def _is_near(self, grams: NDArray[np.uint32], met: Keys) -> bool:
        """Tell whether one of the texts whose numbers are in `met` is a near-copy; those met most often come first."""
        numbers, counts = np.unique(met, return_counts=True)
        numbers = numbers[np.argsort(-counts, kind="stable")].astype(np.int64)
        starts, sizes = self.starts[numbers], self.starts[numbers + 1] - self.starts[numbers]
        alike = np.minimum(sizes, len(grams)) >= ALIKE * np.maximum(sizes, len(grams))  # else it cannot be
        starts, sizes = starts[alike], sizes[alike]
        for k in range(0, len(starts), BLOCK):
            begin, size = starts[k : k + BLOCK], sizes[k : k + BLOCK]
            ends = np.cumsum(size)
            places = np.arange(ends[-1]) + np.repeat(begin - (ends - size), size)
            shared = np.add.reduceat(_contains(grams, self.shingles[places]).astype(np.int64), ends - size)
            if (shared >= ALIKE * (len(grams) + size - shared)).any():
                return True
        return False


def _contains(known: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of `values` are in `known`, which is sorted."""
    if not len(known):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[places] == values)


def _opened(path: Path, dtype: Any) -> NDArray[Any]:
    return np.memmap(path, dtype, "r") if path.stat().st_size else np.empty(0, dtype)


class OverlapCount:
    """Counter of the distinct texts that stand in indexes, batch by batch."""

    def __init__(self, indexes: Sequence[TextIndex]) -> None:
        self.indexes = indexes
        self.keys, self.found = [np.empty(0, np.uint64)], [np.empty(0, np.uint8)]

    def see(self, texts: Iterable[str]) -> None:
        """Count a batch."""
        distinct = list(dict.fromkeys(texts))
        for k in range(0, len(distinct), BLOCK):
            sketches = [sketch_of(text) for text in distinct[k : k + BLOCK]]
            self.keys.append(np.array([sketch.key for sketch in sketches], np.uint64))
            self.found.append(np.max([index.find(sketches) for index in self.indexes], axis=0))

    def counts(self) -> dict[str, int]:
        """Return the number of distinct texts, and of those that stand in the indexes exactly and nearly."""
        _, first = np.unique(np.concatenate(self.keys), return_index=True)
        matches = np.concatenate(self.found)[first]
        return {"texts": len(first), "exact": int((matches == EXACT).sum()), "near": int((matches == NEAR).sum())}
