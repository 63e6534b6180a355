"""A run that is killed again and again, at any moment from its start, ends as the run that nobody killed."""

import os
import shutil
from multiprocessing import get_context
from random import Random
from signal import SIGKILL
from threading import Timer
from time import perf_counter

import pytest

from records.manifest import read_manifest
from tests.triples import quick_run
from training import run as running

KILLS = 20
FILES = ("adapter/adapter_model.safetensors", "head.safetensors")
FACTS = ("status", "steps", "batch_order_sha256", "tokens", "flops", "loss", "validation_ndcg_at_10", "data")


def in_a_process(config, folder, seconds=None):
    """Train in a fork of this process, killed after so many seconds; None: to the end. Return its exit code."""
    process = get_context("fork").Process(target=_die_or_train, args=(config, folder, seconds))
    process.start()
    process.join()
    return process.exitcode


def _die_or_train(config, folder, seconds):
    if seconds is not None:
        killer = Timer(seconds, os.kill, (os.getpid(), SIGKILL))
        killer.daemon = True
        killer.start()
    running.run(config, folder)


def ending(folder):
    """Files and facts of the finished run in `folder`."""
    manifest = read_manifest(folder)
    return [(folder / name).read_bytes() for name in FILES], {key: manifest[key] for key in FACTS}


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_nothing(compose_cell, pairs, tmp_path):
    words = [*quick_run(pairs, 4, checkpoint=1), "trainer.threads=1", "logging.csv=true"]
    config = compose_cell("multilayer", "bi", *words, f"cache_dir='{tmp_path / 'cache'}'")
    running.training_flops(config)  # kept for all that are forked
    assert in_a_process(config, tmp_path / "first") == 0  # fills the caches that its twin finds
    begun = perf_counter()
    assert in_a_process(config, tmp_path / "whole") == 0
    length, whole, kills, moments = perf_counter() - begun, ending(tmp_path / "whole"), 0, Random(0)
    assert ending(tmp_path / "first") == whole
    killed = tmp_path / "killed"
    while kills < KILLS:
        code = in_a_process(config, killed, moments.uniform(0, 1.1 * length))
        if code == -SIGKILL:
            kills += 1
            continue
        assert code == 0
        assert ending(killed) == whole
        shutil.rmtree(killed)
    assert in_a_process(config, killed) == 0
    assert ending(killed) == whole
