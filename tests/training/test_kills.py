"""A run that is killed again and again, at any moment of its life, ends as the run that nobody killed."""

import shutil
from random import Random
from signal import SIGKILL
from time import perf_counter

import pytest

from records.run_folder import RunFolder
from tests.started import ROOT, start

KILLS = 20
# `python -c`: train.py with the words after it, and a thread that kills the process after so many seconds
KILLED = """
import os, runpy, signal, sys, threading
sys.argv = ["train.py", *{words!r}]
killer = threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGKILL))
killer.daemon = True
killer.start()
runpy.run_path({file!r}, run_name="__main__")
"""
FILES = ("adapter/adapter_model.safetensors", "head.safetensors")
FACTS = ("status", "steps", "batch_order_sha256", "tokens", "flops", "loss", "validation_ndcg_at_10", "data")


@pytest.fixture
def command(small_model, pairs, tmp_path):
    """command("runs", seconds): train eight steps there, killed after so many seconds; None: to the end."""
    words = ["pooler=multilayer", "attn=bi", f"model.path={small_model}", "precision=fp32", "max_length=48"]
    words += ["accelerator=cpu", "trainer.max_steps=8", "trainer.global_batch_size=8", "trainer.checkpoint_every=1"]
    words += ["data=jsonl", f"data.path={pairs}", "data.validation=4", "trainer.progress=false", "trainer.threads=1"]
    words += ["objective.warmup=1", "logging.tensorboard=false", f"cache_dir={tmp_path / 'cache'}"]

    def run(runs, seconds=None):
        here = [*words, f"runs_dir={tmp_path / runs}"]
        if seconds is None:
            return start("train.py", *here)
        return start("-c", KILLED.format(words=here, seconds=seconds, file=str(ROOT / "train.py")))

    return run


def ending(runs):
    """Files and facts of the finished run in `runs`."""
    (folder,) = runs.glob("*/multilayer-bi/seed0")
    manifest = RunFolder(folder).manifest()
    return [(folder / name).read_bytes() for name in FILES], {key: manifest[key] for key in FACTS}


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_nothing(command, tmp_path):
    assert command("first").returncode == 0  # fills the caches that its twin finds
    begun = perf_counter()
    assert command("whole").returncode == 0
    length, whole, kills, moments = perf_counter() - begun, ending(tmp_path / "whole"), 0, Random(0)
    assert ending(tmp_path / "first") == whole
    while kills < KILLS:
        done = command("killed", moments.uniform(0, 1.1 * length))
        if done.returncode == -SIGKILL:
            kills += 1
            continue
        assert done.returncode == 0, done.stderr[-2000:]
        assert ending(tmp_path / "killed") == whole
        shutil.rmtree(tmp_path / "killed")
    done = command("killed")
    assert done.returncode == 0, done.stderr[-2000:]
    assert ending(tmp_path / "killed") == whole
