"""A run states the instruction sets that it was given, and two runs with other ones differ by the machine alone."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from analysis.manifests.designs import read_manifest
from analysis.manifests.differences import run_differences
from cli.compose import composed, plain
from records.run_folder import RunFolder
from training.run import train_run

ROOT = Path(__file__).resolve().parent.parent.parent
LIMITS = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "NUMBA_CPU_NAME": "generic"}


def words_of(small_model, pairs, folder):
    """Words of train.py for a run of three steps."""
    words = ["pooler=eos", "attn=causal", f"model.path={small_model}", "precision=mixed", "max_length=48"]
    words += ["data=jsonl", f"data.path='{pairs}'", "data.validation=4", "accelerator=cpu", "trainer.max_steps=3"]
    words += ["trainer.global_batch_size=8", "trainer.progress=false", "logging.tensorboard=false"]
    return [*words, "study=same", f"runs_dir={folder}"]


def trained_here(*of):
    """The run in this process, which nothing limits."""
    assert not LIMITS.keys() & os.environ.keys()
    train_run(plain(composed("train", words_of(*of))), RunFolder(of[-1]))
    return read_manifest(of[-1] / "manifest.json")


def trained_limited(*of):
    """The run in a process of its own: torch asks for its instruction set once per process."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *words_of(*of)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **LIMITS}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = of[-1].glob("*/*/*/manifest.json")
    return read_manifest(path)


@pytest.mark.slow
def test_a_run_states_its_instruction_sets(small_model, pairs, tmp_path):
    usual = trained_here(small_model, pairs, tmp_path / "usual")
    limited = trained_limited(small_model, pairs, tmp_path / "limited")
    stated = [run.manifest["machine"]["instruction_sets"] for run in (usual, limited)]
    assert stated[0]["torch"] == torch.backends.cpu.get_cpu_capability()
    assert (stated[0]["onednn"], stated[1]["torch"], stated[1]["onednn"]) == (None, "DEFAULT", "SSE41")
    compiled = bool(find_spec("numba"))
    assert [run.manifest["elementwise"] != "torch" for run in (usual, limited)] == [compiled] * 2
    assert stated[1]["numba"] == ("generic, features of that name" if compiled else None)
    assert not compiled or "," not in stated[0]["numba"]
    libraries = ("torch", "onednn", "numba") if compiled else ("torch", "onednn")
    assert run_differences(usual, limited) == {f"machine.instruction_sets.{library}" for library in libraries}
