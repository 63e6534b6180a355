"""Two processes that write the very same shard of the cache of states: both go on, one shard stays."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch

from encoders.frozen.state_cache import StateCache
from encoders.tokens import Tokens
from tests.started import start

ROUNDS = 150


def rows(number):
    """A text of four tokens, another one each round."""
    return [Tokens([number, 1, 2, 3], [1, 1, 1, 1])]


def states(number):
    """[2, 4, 8] states of `rows(number)`."""
    return np.full((2, 4, 8), number, dtype=np.float32)


def write_all(root, barrier):
    cache = StateCache(Path(root), {"of": "two writers"}, layers=2, width=8, dtype=torch.float32)
    for number in range(ROUNDS):
        barrier.wait(timeout=600)
        try:
            cache.write(rows(number), states(number))
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)


def write_twice(root):
    """Two processes of one that runs nothing else; their exit codes."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    writers = [context.Process(target=write_all, args=(root, barrier)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=600)
    print(*(writer.exitcode for writer in writers))


@pytest.mark.slow
def test_two_processes_may_write_one_shard(tmp_path):
    done = start("-c", f"from {__name__} import write_twice; write_twice({str(tmp_path)!r})")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 0\n", "")
    cache = StateCache(tmp_path, {"of": "two writers"}, layers=2, width=8, dtype=torch.float32)
    assert cache.missing([row for number in range(ROUNDS) for row in rows(number)]) == []
    assert len(list(cache.folder.glob("*/states.npy"))) == ROUNDS
    assert not [p for p in cache.folder.glob(".*") if p.is_dir()], "no draft is left"


def test_a_shard_that_another_process_has_written_meanwhile_stays(tmp_path):
    """Two caches opened before either has written: the second write finds the folder there, and keeps it."""
    one, other = (StateCache(tmp_path, {"of": "one"}, layers=2, width=8, dtype=torch.float32) for _ in range(2))
    one.write(rows(1), states(1))
    shard = next(one.folder.glob("*/states.npy")).parent
    before = shard.stat().st_ino
    other.write(rows(1), states(1))
    assert shard.stat().st_ino == before, "shards are mapped into memory by others, so they are never replaced"
    assert other.missing(rows(1)) == []
