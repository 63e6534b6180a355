"""One run in several processes that torchrun or SLURM start, on one machine or two: the run of one process."""

import json
import socket

import pytest
import torch
from safetensors.torch import load_file

from cli.errors import UserError
from cli.remarks import HOME
from encoders.precision import best_device
from records.run_folder import RunFolder
from tests.started import start
from training.run import train_run
from training.set_up import check_processes

# A fork per place and its words, which is train.py with its place among the others, as the program that starts it says.
# Lightning, which is imported already, reads the place when it is imported.
PROCESSES = """
import json, multiprocessing, os, runpy, sys

def train(place, words):
    from lightning_fabric.utilities.rank_zero import _get_rank, rank_zero_only
    os.environ.update(place)
    rank_zero_only.rank = _get_rank()
    sys.argv[:] = words
    runpy.run_path(words[0], run_name="__main__")

fork = multiprocessing.get_context("fork")
processes = [fork.Process(target=train, args=job) for job in json.loads(sys.argv[1])]
for process in processes:
    process.start()
for process in processes:
    process.join()
print("exit codes", *(process.exitcode for process in processes))
"""
WORDS = ["pooler=multilayer", "attn=bi", "precision=fp32", "max_length=48", "accelerator=cpu", "trainer.max_steps=3"]
WORDS += ["trainer.global_batch_size=8", "token_budget=128", "data=jsonl", "data.validation=4", "objective.warmup=1"]
WORDS += ["logging.tensorboard=false", "trainer.progress=false", "trainer.threads=1"]


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


def started_by(starter, nodes, devices, words):
    """(environment, words) of each process of one run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(HOME / "train.py"), *words, f"trainer.num_nodes={nodes}", f"trainer.devices={devices}"]
    return [(starter(rank, nodes, devices, port), words) for rank in range(nodes * devices)]


def train_in(jobs):
    done = start("-c", PROCESSES, json.dumps(jobs))
    assert done.stdout.splitlines()[-1] == "exit codes" + " 0" * len(jobs), done.stderr[-3000:]


@pytest.mark.slow
def test_processes_of_torchrun_and_slurm_make_the_run_of_one(compose_cell, pairs, tmp_path):
    cfg = compose_cell("multilayer", "bi", *WORDS[4:], f"data.path='{pairs}'")
    train_run(cfg, RunFolder(tmp_path / "one"))
    jobs, folders = [], []
    for starter, nodes, devices, shared_out in ((torchrun, 2, 2, "false"), (slurm, 2, 1, "true")):
        words = [*WORDS, f"data.path='{pairs}'", f"model.path={cfg['model']['path']}"]
        words += [f"runs_dir={tmp_path / starter.__name__}", f"trainer.shard_base={shared_out}"]
        folders.append(tmp_path / starter.__name__)
        jobs += started_by(starter, nodes, devices, words)
    train_in(jobs)
    one = RunFolder(tmp_path / "one").manifest()
    for place in folders:
        (folder,) = place.glob("*/multilayer-bi/seed=0")
        several = RunFolder(folder).manifest()
        assert (several["batch_order_sha256"], several["tokens"]) == (one["batch_order_sha256"], one["tokens"])
        assert several["loss"] == pytest.approx(one["loss"], abs=1e-5)
        assert several["validation_ndcg_at_10"] == one["validation_ndcg_at_10"]
        for file in ("adapter/adapter_model.safetensors", "head.safetensors"):
            ours, theirs = load_file(tmp_path / "one" / file), load_file(folder / file)
            assert ours.keys() == theirs.keys()
            assert max(float((ours[key] - theirs[key]).abs().max()) for key in ours) < 1e-4, (place, file)


@pytest.mark.slow
def test_a_shared_out_base_is_scored_before_its_first_step_as_a_whole_one(compose_cell, headed_model, lines, tmp_path):
    words = ["objective=simcse", "data=text", f"data.path='{lines}'", "data.validation=8", "trainer.max_steps=1"]
    words += [*WORDS[-4:], "trainer.global_batch_size=8", f"model.path={headed_model}"]
    train_run(compose_cell("mean", "bi", *words), RunFolder(tmp_path / "one"))
    words += ["pooler=mean", *WORDS[1:5], f"runs_dir={tmp_path / 'two'}", "trainer.shard_base=true"]
    train_in(started_by(slurm, 2, 1, words))
    (folder,) = (tmp_path / "two").glob("*/mean-bi/seed=0")
    one, two = (RunFolder(place).manifest()["held_out"] for place in (tmp_path / "one", folder))
    for when in ("before", "after"):
        assert two[when] == pytest.approx(one[when], rel=1e-4)
    assert one["before"] != one["after"]


def test_a_process_has_the_gpu_of_its_place(monkeypatch):
    """SLURM says it under a name of its own; without it all tasks of a machine would take the first GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert best_device().index == 0
    monkeypatch.setenv("SLURM_LOCALID", "3")
    assert best_device().index == 3
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert best_device().index == 1


def test_numbers_of_processes_that_do_not_agree_are_refused(monkeypatch):
    with pytest.raises(UserError, match=r"trainer.num_nodes=2 needs 16 processes, .* \(no SLURM tasks here\)"):
        check_processes(8, 2)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("WORLD_SIZE", "4")
    check_processes(2, 2)
    with pytest.raises(UserError, match=r"4 processes, but trainer.devices=2 x trainer.num_nodes=1 are 2"):
        check_processes(2, 1)
