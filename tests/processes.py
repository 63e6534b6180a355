"""Processes of one command as torchrun or SLURM start them, on one machine or several."""

import json
import socket
from collections.abc import Callable, Sequence

from tests.started import ROOT, start

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
Place = dict[str, str]  # environment of a process
Job = tuple[Place, list[str]]  # with the program and its words


def torchrun(rank: int, nodes: int, devices: int, port: int) -> Place:
    """What torchrun sets (https://docs.pytorch.org/docs/stable/elastic/run.html)."""
    place = {"RANK": rank, "LOCAL_RANK": rank % devices, "GROUP_RANK": rank // devices, "WORLD_SIZE": nodes * devices}
    place |= {"LOCAL_WORLD_SIZE": devices, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "x"}
    return {key: str(value) for key, value in place.items()}


def slurm(rank: int, nodes: int, devices: int, port: int) -> Place:
    """What srun sets in each task (https://slurm.schedmd.com/srun.html)."""
    place = {"PROCID": rank, "LOCALID": rank % devices, "NODEID": rank // devices, "NTASKS": nodes * devices}
    place |= {"NTASKS_PER_NODE": devices, "NNODES": nodes, "JOB_ID": 7, "JOB_NAME": "cell", "NODELIST": "localhost"}
    return {"MASTER_PORT": str(port)} | {f"SLURM_{key}": str(value) for key, value in place.items()}


def started_by(
    starter: Callable[..., Place], nodes: int, devices: int, program: str, words: Sequence[str]
) -> list[Job]:
    """The jobs of one command, a program of this checkout with its words: one per device of each node."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [(starter(rank, nodes, devices, port), [str(ROOT / program), *words]) for rank in range(nodes * devices)]


def run_together(jobs: Sequence[Job]) -> str:
    """Run all jobs at once to their ends, which must be good; return what they print, one into the other."""
    done = start("-c", PROCESSES, json.dumps(jobs))
    *lines, codes = done.stdout.splitlines() or [""]
    assert codes == "exit codes" + " 0" * len(jobs), done.stderr[-3000:]
    return "\n".join(lines)
