"""A run states the instruction sets that it was given, and two runs with other ones differ by the machine alone."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from analysis.manifests.differences import run_differences
from analysis.manifests.read_manifest import read_manifest

ROOT = Path(__file__).resolve().parent.parent.parent
LIMITS = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "NUMBA_CPU_NAME": "generic"}


def trained(small_model, pairs, folder, environment):
    """Train three steps in a process of its own: torch asks for its instruction set once per process."""
    words = ["pooler=eos", "attn=causal", f"model.path={small_model}", "precision=mixed", "max_length=48"]
    words += ["data=jsonl", f"data.path='{pairs}'", "data.validation=4", "accelerator=cpu", "trainer.max_steps=3"]
    words += ["trainer.global_batch_size=8", "trainer.progress=false", "logging.tensorboard=false"]
    usual = {key: value for key, value in os.environ.items() if key not in LIMITS}
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *words, "study=same", f"runs_dir={folder}"],
        env=usual | {"OMP_NUM_THREADS": "1"} | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = folder.glob("*/*/*/manifest.json")
    return read_manifest(path)


@pytest.mark.slow
def test_a_run_states_its_instruction_sets(small_model, pairs, tmp_path):
    usual = trained(small_model, pairs, tmp_path / "usual", {})
    limited = trained(small_model, pairs, tmp_path / "limited", LIMITS)
    stated = [run.manifest["machine"]["instruction_sets"] for run in (usual, limited)]
    assert stated[0]["torch"] == torch.backends.cpu.get_cpu_capability()
    assert (stated[0]["onednn"], stated[1]["torch"], stated[1]["onednn"]) == (None, "DEFAULT", "SSE41")
    compiled = bool(find_spec("numba"))
    assert [run.manifest["elementwise"] != "torch" for run in (usual, limited)] == [compiled] * 2
    assert stated[1]["numba"] == ("generic, features of that name" if compiled else None)
    assert not compiled or "," not in stated[0]["numba"]
    libraries = ("torch", "onednn", "numba") if compiled else ("torch", "onednn")
    assert run_differences(usual, limited) == {f"machine.instruction_sets.{library}" for library in libraries}
