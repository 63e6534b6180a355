"""A study killed on its way and given again: the numbers of its commands; a sweep whose job fails goes on."""

import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.started import ROOT, run_here, start
from tests.triples import quick_run, write_triples

pytestmark = pytest.mark.slow
STUDY = "small+experiment-bundled"
DESIGNS = ("eos-causal", "lastlayer-causal")
SCORED = ["benchmark=docstrings_smoke", "tasks=[DocsNetworkxClassification,DocsNetworkxRetrieval]", "embeddings=false"]


@pytest.fixture(scope="module")
def training_words(small_model, tmp_path_factory):
    """Words of train.py for runs of two steps."""
    pairs = write_triples(tmp_path_factory.mktemp("data") / "pairs.jsonl")
    words = [*quick_run(pairs), "experiment=bundled", f"model.path={small_model}", "max_length=16", "study=small"]
    return lambda folder: [*words, f"runs_dir={folder}"]


@pytest.fixture(scope="module")
def study(training_words, tmp_path_factory):
    """Its folder; it was killed after its first job."""
    folder = tmp_path_factory.mktemp("study")
    words = ["study.py", "seeds=[0]", "jobs=1", "untrained=true", f"designs=[{','.join(DESIGNS)}]"]
    words += [*training_words(folder), *SCORED]
    first = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    next(line for line in first.stdout if line.startswith("[1 of 6] train eos-causal seed 0 ended"))
    first.send_signal(signal.SIGTERM)
    first.stdout.close()
    assert first.wait(300) != 0
    done = start(*words)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "eos-causal/seed0 is finished; nothing to do." in done.stdout
    assert (folder / STUDY / "tables" / "report.html").exists()
    return folder


def scores_in(folder):
    """(model, seed) -> the scores of its tasks."""
    found = {}
    for file in sorted((folder / STUDY / "scores" / "results").rglob("Docs*.json")):
        design, seed = file.parts[-3].partition("__")[2], file.parts[-2].partition("@")[0]
        found.setdefault((design, seed), {})[file.name] = json.loads(file.read_text())["scores"]
    return found


def test_a_study_has_the_numbers_of_its_commands(study, training_words, tmp_path):
    """Trained and scored in processes of one server, and as train.py and evaluate.py by themselves."""
    words = ["pooler=lastlayer", "attn=causal", "trainer.progress=lines"]
    assert start("train.py", *words, *training_words(tmp_path)).returncode == 0
    cell = Path(STUDY, "lastlayer-causal", "seed0")
    words = [f"run={tmp_path / cell}", "untrained=also", *SCORED, "progress=false"]
    assert start("evaluate.py", *words).returncode == 0
    for file in ("adapter/adapter_model.safetensors", "head.safetensors"):
        one, two = (load_file(folder / cell / file) for folder in (study, tmp_path))
        assert one.keys() == two.keys()
        assert all((one[key] == two[key]).all() for key in one), file
    alone = scores_in(tmp_path)
    assert alone.keys() == {(f"lastlayer-causal{of}", "seed0") for of in ("", "-untrained")}
    assert alone == {key: scores_in(study)[key] for key in alone}


@pytest.mark.parametrize("launcher", ["basic", "submitit_local"])
def test_a_job_of_a_sweep_that_fails_stops_no_other_and_is_listed(launcher, training_words, tmp_path):
    if launcher != "basic" and not find_spec("hydra_submitit_launcher"):
        pytest.skip(f"hydra/launcher={launcher} is not installed")
    sweep = ["train.py", "-m", *training_words(tmp_path), "trainer.progress=false", f"hydra/launcher={launcher}"]
    sweep += ["lora.targets=choice([nope],[q_proj])"]
    done = (run_here if launcher == "basic" else start)(*sweep)
    assert done.returncode == 2, done.stderr[-3000:]
    failed, last = done.stderr.splitlines()[-2:]
    assert failed.startswith("failed: ")
    assert "lora.targets names ['nope'], not in this model." in failed
    assert last == "error: 1 jobs of the sweep failed; the same command goes on from what is finished."
    (manifest,) = tmp_path.glob("small*/*/seed0/manifest.json")
    assert json.loads(manifest.read_text())["status"] == "finished"


def test_tasks_are_jobs_of_a_sweep(study, tmp_path):
    run = study / STUDY / "eos-causal" / "seed0"
    names = [name.strip("[]") for name in SCORED[1].partition("=")[2].split(",")]
    words = ["evaluate.py", "-m", f"run={run}", SCORED[0], f"tasks=[{names[0]}],[{names[1]}]", "progress=false"]
    done = run_here(*words, f"results={tmp_path}", "embeddings=false")
    assert done.returncode == 0, done.stderr[-3000:]
    together = {file.name: json.loads(file.read_text())["scores"] for file in tmp_path.rglob("Docs*.json")}
    assert together == scores_in(study)["eos-causal", "seed0"]
