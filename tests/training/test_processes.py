"""One run in several processes that torchrun or SLURM start, on one machine or two: the run of one process."""

import json
import socket

import pytest
import torch
from safetensors.torch import load_file

from cli.errors import UserError
from encoders.precision import best_device
from records.manifest import read_manifest
from tests.started import ROOT, start
from tests.triples import quick_run
from training.checks import check_sizes
from training.run import train_run

# A fork per place and its words, which is the program with its place among the others, as what starts it says.
# Lightning, which is imported already, reads the place when it is imported.
PROCESSES = """
import json, multiprocessing, os, runpy, sys

def become(place, words):
    from lightning_fabric.utilities.rank_zero import _get_rank, rank_zero_only
    os.environ.update(place)
    rank_zero_only.rank = _get_rank()
    sys.argv[:] = words
    runpy.run_path(words[0], run_name="__main__")

fork = multiprocessing.get_context("fork")
processes = [fork.Process(target=become, args=job) for job in json.loads(sys.argv[1])]
for process in processes:
    process.start()
for process in processes:
    process.join()
print("exit codes", *(process.exitcode for process in processes))
"""


def torchrun(rank: int, nodes: int, devices: int, port: int) -> dict[str, str]:
    """What torchrun sets (https://docs.pytorch.org/docs/stable/elastic/run.html)."""
    place = {"RANK": rank, "LOCAL_RANK": rank % devices, "GROUP_RANK": rank // devices, "WORLD_SIZE": nodes * devices}
    place |= {"LOCAL_WORLD_SIZE": devices, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "x"}
    return {key: str(value) for key, value in place.items()}


def slurm(rank: int, nodes: int, devices: int, port: int) -> dict[str, str]:
    """What srun sets in each task (https://slurm.schedmd.com/srun.html)."""
    place = {"PROCID": rank, "LOCALID": rank % devices, "NODEID": rank // devices, "NTASKS": nodes * devices}
    place |= {"NTASKS_PER_NODE": devices, "NNODES": nodes, "JOB_ID": 7, "JOB_NAME": "cell", "NODELIST": "localhost"}
    return {"MASTER_PORT": str(port)} | {f"SLURM_{key}": str(value) for key, value in place.items()}


def train_in(jobs):
    """Run (starter, nodes, devices, words of train.py) of each run, all at once, to their ends, which must be good."""
    started = []
    for starter, nodes, devices, words in jobs:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = [str(ROOT / "train.py"), *words, f"trainer.num_nodes={nodes}", f"trainer.devices={devices}"]
        started += [(starter(rank, nodes, devices, port), program) for rank in range(nodes * devices)]
    done = start("-c", PROCESSES, json.dumps(started))
    assert done.stdout.endswith("exit codes" + " 0" * len(started) + "\n"), done.stderr[-3000:]


@pytest.mark.slow
def test_processes_of_torchrun_and_slurm_make_the_run_of_one(compose_cell, pairs, tmp_path):
    quick = [*quick_run(pairs), "token_budget=128", "trainer.threads=1"]
    cfg = compose_cell("multilayer", "bi", *quick)
    train_run(cfg, tmp_path / "one")
    jobs, folders = [], []
    for starter, nodes, devices in ((torchrun, 2, 2), (slurm, 2, 1)):
        words = [*quick, "experiment=bundled", "pooler=multilayer", "attn=bi", f"model.path={cfg['model']['path']}"]
        words += ["precision=fp32", "max_length=48", "accelerator=cpu", f"runs_dir={tmp_path / starter.__name__}"]
        folders.append(tmp_path / starter.__name__)
        jobs.append((starter, nodes, devices, words))
    train_in(jobs)
    one = read_manifest(tmp_path / "one")
    for place in folders:
        (folder,) = place.glob("*/multilayer-bi/seed0")
        several = read_manifest(folder)
        assert (several["batch_order_sha256"], several["tokens"]) == (one["batch_order_sha256"], one["tokens"])
        assert several["loss"] == pytest.approx(one["loss"], abs=1e-5)
        assert several["validation_ndcg_at_10"] == one["validation_ndcg_at_10"]
        for file in ("adapter/adapter_model.safetensors", "head.safetensors"):
            ours, theirs = load_file(tmp_path / "one" / file), load_file(folder / file)
            assert ours.keys() == theirs.keys()
            assert max(float((ours[key] - theirs[key]).abs().max()) for key in ours) < 1e-4, (place, file)


def test_more_processes_than_devices_are_refused(compose_cell, monkeypatch):
    """Each would take itself for the only one, train the whole run on the first GPU and write into its folder."""
    for key, value in torchrun(3, 1, 8, 1).items():
        monkeypatch.setenv(key, value)
    with pytest.raises(UserError, match=r"8 processes were started\. Give trainer\.devices="):
        check_sizes(compose_cell("mean", "bi"))


def test_a_process_has_the_gpu_of_its_place(monkeypatch):
    """SLURM says it under a name of its own; without it all tasks of a machine would take the first GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert best_device().index == 0
    monkeypatch.setenv("SLURM_LOCALID", "3")
    assert best_device().index == 3
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert best_device().index == 1
