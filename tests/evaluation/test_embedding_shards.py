"""Embeddings on disk: the very bits that were computed, whole after a kill, shared by processes, millions streamed."""

import hashlib
import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from cli.errors import UserError
from evaluation.embeddings import cache as embedding_cache
from evaluation.embeddings import cache as matrix
from evaluation.embeddings import on_disk
from evaluation.embeddings.cache import EmbeddingCache, windows
from evaluation.embeddings.on_disk import KEYS, VECTORS, EmbeddingShards, KeyIndex, keys_of
from evaluation.embeddings.store import open_store
from evaluation.mteb_encoder import texts_of
from tests.started import start

TEXTS = [f"apple pear {i}" for i in range(50)]


@pytest.fixture
def opened(bag, tmp_path):
    """Make a cache on disk with a fresh encoder: opened(salt="other weights")."""

    def make(**changes) -> EmbeddingCache:
        encoder = bag(**changes)
        return EmbeddingCache(encoder, open_store(encoder, tmp_path), tmp_path)

    return make


def shards(folder: Path) -> list[Path]:
    return sorted(p.parent for p in folder.rglob(VECTORS))


def test_another_command_reads_the_very_bits(opened) -> None:
    first, second = opened(), opened()
    wanted = first.embed(TEXTS, "find")
    np.testing.assert_array_equal(second.embed(TEXTS[::-1], "find"), wanted[::-1])
    assert second.encoder.seen == []
    assert (first.texts, second.texts) == (0, len(TEXTS))


def test_instruction_weights_settings_and_code_part_the_vectors(opened) -> None:
    opened().embed(["apple"])
    assert len(opened().encoder.seen) == 0
    for cache, instruction in (
        (opened(), "find"),
        (opened(salt="trained"), ""),
        (opened(settings={"device": "cuda"}), ""),
        (opened(sources="mended"), ""),
    ):
        cache.embed(["apple"], instruction)
        assert len(cache.encoder.seen) == 1


def test_where_the_instruction_ends_is_part_of_the_key() -> None:
    pairs = [("", "ab"), ("a", "b"), ("ab", ""), ("1 a", "b"), ("", "1 ab")]
    keys = np.concatenate([keys_of(instruction, [text]) for instruction, text in pairs])
    assert len(np.unique(keys)) == len(pairs)


def test_an_index_finds_what_a_dictionary_finds() -> None:
    random = np.random.default_rng(0)
    index, known = KeyIndex(), {}
    for size in (1, 700, 3, 3, 40, 2000, 1, 1, 1):
        texts = [str(n) for n in random.integers(10**9, size=size)]
        places = random.integers(2**50, size=size)
        index.add(keys_of("", texts), places)
        known |= dict(zip(texts, places, strict=True))
    asked = [*known, "absent", "none"]
    found = index.find(keys_of("", asked))
    assert found.tolist() == [known.get(text, -1) for text in asked]


def test_two_processes_that_work_on_the_same_texts_disturb_nobody(opened, tmp_path) -> None:
    one, two = opened(), opened()
    keys = keys_of("", TEXTS)
    for number, cache in enumerate((one, two)):
        cache.store.add(keys, np.full((len(TEXTS), 512), number, dtype=np.float32))
        cache.store.flush()
    assert len(shards(tmp_path)) == 1
    for cache in (one, two, opened()):
        np.testing.assert_array_equal(cache.embed(TEXTS), np.zeros((len(TEXTS), 512)))  # the first one's count
    two.embed(["plum"])
    one.embed(["plum"])  # taken up while both run
    assert [text for _, text in one.encoder.seen + two.encoder.seen] == ["plum"]


def test_a_shard_that_appears_while_one_is_written_stays(tmp_path) -> None:
    from records.atomic import appearing

    with appearing(tmp_path / "shard") as mine:
        mine.mkdir()
        (mine / "text").write_text("second")
        (tmp_path / "shard").mkdir()
        (tmp_path / "shard" / "text").write_text("first")
    assert (tmp_path / "shard" / "text").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["shard"]


@pytest.mark.parametrize("file", [KEYS, VECTORS])
def test_a_damaged_shard_is_named(opened, tmp_path, file) -> None:
    opened().embed(TEXTS)
    (shard,) = shards(tmp_path)
    (shard / file).write_bytes((shard / file).read_bytes()[:-100])
    with pytest.raises(UserError, match=f"{shard} are damaged.*Delete that folder"):
        opened().embed(TEXTS)


def test_shards_are_written_when_enough_waits(opened, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(on_disk, "SHARD_BYTES", 20 * 512 * 4)
    store = opened().store
    for k in range(0, 50, 10):
        store.add(keys_of("", TEXTS[k : k + 10]), np.ones((10, 512), dtype=np.float32))
    assert len(shards(tmp_path)) == 2
    store.flush()
    assert len(shards(tmp_path)) == 3


def test_drafts_of_killed_processes_are_removed_after_a_day(opened, tmp_path) -> None:
    folder = opened().store.folder
    old, new = folder / ".old.x", folder / ".new.x"
    for draft in (old, new):
        draft.mkdir()
    os.utime(old, times=(time.time() - 2 * 86400,) * 2)
    EmbeddingShards(folder, 512)
    assert not old.exists()
    assert new.exists()


KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from evaluation.embeddings import on_disk
from evaluation.embeddings.cache import EmbeddingCache
on_disk.SHARD_SECONDS = 0.0  # each part is a shard
class Encoder:
    embedding_dim, done = 8, 0
    class meter: seconds = 0.0
    def parts(self, texts, instruction=""):
        for start in range(0, len(texts), 10):
            if self.done == int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)
            self.done += 1
            chunk = list(range(start, min(start + 10, len(texts))))
            yield chunk, np.array([[float(texts[i])] * 8 for i in chunk], dtype=np.float32)
encoder = Encoder()
cache = EmbeddingCache(encoder, on_disk.EmbeddingShards(Path(sys.argv[1]), 8))
vectors = cache.embed([str(i) for i in range(100)])
print(encoder.done, vectors[:, 0].tolist() == list(range(100)))
"""


@pytest.mark.slow
def test_a_killed_process_loses_no_whole_shard(tmp_path) -> None:
    killed = start("-c", KILLED, str(tmp_path), "4")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(shards(tmp_path)) == 4
    again = start("-c", KILLED, str(tmp_path), "99")
    assert again.stdout.split() == ["6", "True"], again.stderr


def test_a_stream_is_cut_into_windows_of_distinct_texts() -> None:
    batches = [["a", "b", "a"], [], ["c", "b"], ["d", "a"]]
    found = list(windows(batches, 2))
    assert [w.texts for w in found] == [["a", "b"], ["c", "b"], ["d", "a"]]
    assert [w.texts[i] for w in found for i in w.rows] == [text for batch in batches for text in batch]


@pytest.mark.parametrize("in_memory", [10**9, 0], ids=["memory", "file"])
def test_a_stream_is_never_held_whole(opened, monkeypatch, in_memory) -> None:
    """No more than a window and a batch of texts are alive at any time, though all of them are embedded."""
    monkeypatch.setattr(embedding_cache, "WINDOW", 10)
    monkeypatch.setattr(matrix, "IN_MEMORY", in_memory)
    alive, most = set(), 0

    class Text(str):
        def __del__(self) -> None:
            alive.discard(id(self))

    def batches():
        nonlocal most
        for first in range(0, 120, 4):
            batch = [Text(f"apple {i}") for i in range(first, first + 4)]
            alive.update(map(id, batch))
            most = max(most, len(alive))
            yield batch

    cache = opened()
    cache.encoder.seen = type("Forgetful", (list,), {"__iadd__": lambda self, other: self})()
    vectors = cache.stream(batches())
    assert isinstance(vectors, np.memmap) == (in_memory == 0)
    assert most <= 10 + 10 + 2 * 4  # a window that is encoded, the one before it, and two batches
    np.testing.assert_array_equal(vectors, opened().embed([f"apple {i}" for i in range(120)]))


@pytest.mark.parametrize("batches", [[], [[]], [["a"]], [['q"uote', "ü\n"], [], ["b", "c"]]], ids=str)
def test_the_digest_of_the_inputs_is_that_of_their_json(batches) -> None:
    texts = [text for batch in batches for text in batch]
    digest = hashlib.sha256()
    passed = list(texts_of(({"text": batch} for batch in batches), digest, "query", 'find "it"'))
    assert passed == batches
    assert digest.hexdigest() == hashlib.sha256(json.dumps(["query", 'find "it"', texts]).encode()).hexdigest()
