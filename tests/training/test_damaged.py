"""A damaged file of a run, or two commands in its folder: refused by name, or the very bits of an undisturbed run."""

import shutil

import pytest
import torch

from cli.errors import UserError
from records.fingerprint import of_file
from records.lock import alone_in
from records.run_folder import RunFolder
from training.loop import LAST
from training.run import finished, train_run

pytestmark = pytest.mark.slow
TRAINED = ("adapter/adapter_model.safetensors", "head.safetensors")


@pytest.fixture(scope="module")
def config(compose_cell, pairs):
    """A run of three quick steps, a checkpoint after each."""
    trainer = ["max_steps=3", "global_batch_size=8", "checkpoint_every=1", "progress=false"]
    words = ["data=jsonl", f"data.path='{pairs}'", "data.validation=4", "objective.warmup=1", "logging.csv=false"]
    return compose_cell("lastlayer", "bi", *words, *(f"trainer.{t}" for t in trainer), "logging.tensorboard=false")


def test_what_is_damaged_is_named(config, tmp_path, power_cut):
    """Bits all over a checkpoint, its end, and each file of a finished run."""
    half, whole = tmp_path / "half", tmp_path / "whole"
    with power_cut(2):
        train_run(config, RunFolder(half))
    shutil.copytree(half, whole)
    train_run(config, RunFolder(whole))
    good = (half / LAST).read_bytes()
    generator = torch.Generator().manual_seed(0)
    places = torch.randint(len(good), (12,), generator=generator).tolist()
    told = []
    for cut in (0, 1, len(good) // 2, len(good) - 1, *(-place for place in places)):
        place = -cut
        data = good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :] if cut < 0 else good[:cut]
        (half / LAST).write_bytes(data)
        try:
            train_run(config, RunFolder(half))
        except UserError as error:
            told.append(str(error))
        else:  # a bit that says nothing: padding between the tensors
            assert [of_file(half / name) for name in TRAINED] == [of_file(whole / name) for name in TRAINED]
    assert all(f"The checkpoint {half / LAST} is damaged" in message for message in told)
    assert len(told) >= 10
    for name in TRAINED:
        data = (whole / name).read_bytes()
        (whole / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(UserError, match=f"{name} is not what the run wrote"):
            finished(config, RunFolder(whole))
        (whole / name).write_bytes(data)
    assert finished(config, RunFolder(whole))


def test_a_second_command_in_the_folder_is_refused(config, tmp_path):
    folder = tmp_path / "run"
    with alone_in(folder), pytest.raises(UserError, match=f"Another process is at work in {folder}"):
        train_run(config, RunFolder(folder))
    assert list(folder.iterdir()) == [], "nothing is written there"
    with alone_in(folder):
        pass
