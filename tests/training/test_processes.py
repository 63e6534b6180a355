"""One run in several processes that torchrun or SLURM start, on one machine or two: the run of one process."""

import pytest
import torch
from safetensors.torch import load_file

from encoders.precision import best_device
from records.run_folder import RunFolder
from tests.processes import run_together, slurm, started_by, torchrun
from tests.triples import quick_run
from training.run import train_run


def train_in(jobs):
    """(starter, nodes, devices, words of train.py) of each run, all at once."""
    sizes = [[f"trainer.num_nodes={nodes}", f"trainer.devices={devices}"] for _, nodes, devices, _ in jobs]
    runs = zip(jobs, sizes, strict=True)
    run_together([job for (*place, words), size in runs for job in started_by(*place, "train.py", [*words, *size])])


@pytest.mark.slow
def test_processes_of_torchrun_and_slurm_make_the_run_of_one(compose_cell, pairs, tmp_path):
    quick = [*quick_run(pairs, 3), "token_budget=128", "trainer.threads=1"]
    cfg = compose_cell("multilayer", "bi", *quick)
    train_run(cfg, RunFolder(tmp_path / "one"))
    jobs, folders = [], []
    for starter, nodes, devices in ((torchrun, 2, 2), (slurm, 2, 1)):
        words = [*quick, "experiment=bundled", "pooler=multilayer", "attn=bi", f"model.path={cfg['model']['path']}"]
        words += ["precision=fp32", "max_length=48", "accelerator=cpu", f"runs_dir={tmp_path / starter.__name__}"]
        folders.append(tmp_path / starter.__name__)
        jobs.append((starter, nodes, devices, words))
    train_in(jobs)
    one = RunFolder(tmp_path / "one").manifest()
    for place in folders:
        (folder,) = place.glob("*/multilayer-bi/seed0")
        several = RunFolder(folder).manifest()
        assert (several["batch_order_sha256"], several["tokens"]) == (one["batch_order_sha256"], one["tokens"])
        assert several["loss"] == pytest.approx(one["loss"], abs=1e-5)
        assert several["validation_ndcg_at_10"] == one["validation_ndcg_at_10"]
        for file in ("adapter/adapter_model.safetensors", "head.safetensors"):
            ours, theirs = load_file(tmp_path / "one" / file), load_file(folder / file)
            assert ours.keys() == theirs.keys()
            assert max(float((ours[key] - theirs[key]).abs().max()) for key in ours) < 1e-4, (place, file)


def test_a_process_has_the_gpu_of_its_place(monkeypatch):
    """SLURM says it under a name of its own; without it all tasks of a machine would take the first GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert best_device().index == 0
    monkeypatch.setenv("SLURM_LOCALID", "3")
    assert best_device().index == 3
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert best_device().index == 1
