"""A study killed after its first look and given again: the same looks, and the numbers of its commands."""

import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import evaluate
import train
from cli.errors import UserError
from records.run_folder import RunFolder
from studies import workers
from studies.jobs import split_words, study_jobs
from studies.workers import finished_jobs
from tests.started import ROOT, start
from tests.triples import write_triples

pytestmark = pytest.mark.slow
DESIGNS = ("eos-causal", "lastlayer-causal")
SCORED = ["benchmark=docs_smoke", "tasks=[DocsNetworkxClassification,DocsNetworkxRetrieval]", "embeddings=false"]


@pytest.fixture(scope="module")
def training_words(small_model, tmp_path_factory):
    """Words of train.py for runs of two steps."""
    pairs = write_triples(tmp_path_factory.mktemp("data") / "pairs.jsonl")
    words = ["data=jsonl", f"data.path={pairs}", "data.validation=4", f"model.path={small_model}", "max_length=16"]
    words += ["trainer.max_steps=2", "trainer.global_batch_size=8", "study=small", "logging.tensorboard=false"]
    return lambda folder: [*words, f"runs_dir={folder}"]


@pytest.fixture(scope="module")
def study(training_words, tmp_path_factory):
    """Its folder, and what was printed: the line of the first look before the kill, then all after it."""
    folder = tmp_path_factory.mktemp("study")
    words = ["study.py", "seeds=auto", "max_seeds=4", f"designs=[{','.join(DESIGNS)}]"]
    words += [*training_words(folder), *SCORED]
    first = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    look = next(line for line in first.stdout if line.startswith("Look at 3 seeds"))
    first.send_signal(signal.SIGTERM)
    first.stdout.close()
    assert first.wait(300) != 0
    done = start(*words)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, look.strip(), done.stdout.splitlines()


def scores_in(folder):
    """(model, seed) -> the scores of its tasks."""
    found = {}
    for file in sorted((folder / "small" / "scores" / "results").rglob("Docs*.json")):
        design, seed = file.parts[-3].partition("__")[2], file.parts[-2].partition("@")[0]
        found.setdefault((design, seed), {})[file.name] = json.loads(file.read_text())["scores"]
    return found


def test_a_killed_study_goes_on_with_the_same_looks(study):
    folder, look, lines = study
    looks = [line for line in lines if line.startswith("Look at")]
    assert looks[0] == look
    assert [line.partition(",")[0] for line in looks] == ["Look at 3 seeds", "Look at 4 seeds"]
    assert lines[1] == "13 of 13 jobs are finished, as their files say."
    found = json.loads((folder / "small" / "scores" / "sequential.json").read_text())
    assert (found["looks"], found["outcomes"]) == ([3, 4], {"lastlayer-causal": "not told"})
    scores = scores_in(folder)
    means = [
        np.mean([s["test"][0]["main_score"] for k in range(4) for s in scores[design, f"seed{k}"].values()])
        for design in DESIGNS
    ]
    assert found["tests"][1]["difference"] == pytest.approx(means[1] - means[0])


@pytest.mark.parametrize(("pooler", "seed"), [("eos", 0), ("lastlayer", 3)])
def test_a_study_has_the_numbers_of_its_commands(study, training_words, tmp_path, pooler, seed):
    """Trained and scored in processes of one server, and as train.py and evaluate.py by themselves."""
    words = [f"pooler={pooler}", "attn=causal", f"seed={seed}", "trainer.progress=lines"]
    assert start("train.py", *words, *training_words(tmp_path)).returncode == 0
    cell = Path("small", f"{pooler}-causal", f"seed{seed}")
    words = [f"run={tmp_path / cell}", "untrained=also", *SCORED, "progress=false"]
    assert start("evaluate.py", *words).returncode == 0
    for file in ("adapter/adapter_model.safetensors", "head.safetensors"):
        one, two = (load_file(folder / cell / file) for folder in (study[0], tmp_path))
        assert one.keys() == two.keys()
        assert all((one[key] == two[key]).all() for key in one), file
    alone = scores_in(tmp_path)
    assert alone.keys() == {(f"{pooler}-causal{of}", f"seed{seed}") for of in ("", "-untrained")}
    assert alone == {key: scores_in(study[0])[key] for key in alone}


@pytest.fixture
def kept(study, training_words, tmp_path):
    """A copy of the study, and its jobs of one seed by name."""
    folder = shutil.copytree(study[0], tmp_path / "study")
    words = split_words([*training_words(folder), *SCORED])
    config = {"designs": list(DESIGNS), "seeds": [0], "jobs": None, "max_seeds": 10, "untrained": True, "plan": False}
    return folder, {job.name: job for job in study_jobs(config, words)}


def test_what_is_finished_is_told_by_its_files(kept):
    folder, jobs = kept
    run = jobs["train eos-causal seed 0"].run
    train_it, score_it, score_starts, score_other = (
        list(jobs[name].words[1:])
        for name in (
            "train eos-causal seed 0",
            "score eos-causal seed 0",
            "score the starts of causal",
            "score lastlayer-causal seed 0",
        )
    )
    assert train.finished(train_it, run)
    assert evaluate.finished(score_starts)
    assert evaluate.finished(score_it)
    assert not evaluate.finished([*score_it, "instructions=table"])
    assert not evaluate.finished([*score_it, "tasks=[DocsNetworkxSTS]"])
    assert not evaluate.finished([*score_it, "evaluation.dims=[8]"]), "loading tells"
    assert not evaluate.finished([*score_it, "predictions=true"]), "the command says that there are none"
    adapter = Path(run) / "adapter" / "adapter_model.safetensors"
    save_file({name: weight + 1 for name, weight in load_file(adapter).items()}, adapter)
    with pytest.raises(UserError, match=r"adapter_model.safetensors is not what the run wrote"):
        evaluate.finished(score_it)
    RunFolder(Path(run)).write({**json.loads((Path(run) / "manifest.json").read_text()), "files": {}})
    assert not evaluate.finished(score_it), "other weights have other scores"
    assert evaluate.finished(score_other)
    (score,) = folder.glob("small/scores/results/small__lastlayer-causal/seed0@*/DocsNetworkxRetrieval.json")
    score.write_text(score.read_text()[:100])
    assert not evaluate.finished(score_other)
    (folder / "small" / "scores" / "tasks.json").unlink()
    assert not evaluate.finished(score_starts)
    with pytest.raises(UserError, match="another configuration"):
        train.finished([*train_it, "lora.r=4"], run)
    (Path(run) / "manifest.json").unlink()
    assert not train.finished(train_it, run)


def test_a_job_whose_run_is_not_finished_is_not(kept, monkeypatch):
    """Nor is one whose answer is an error: the job says it. What finds out is a fork, which has imported all."""
    _, jobs = kept
    (Path(jobs["train eos-causal seed 0"].run) / "manifest.json").write_text("{}")
    monkeypatch.setattr(workers, "_context", lambda _: multiprocessing.get_context("fork"))
    finished = finished_jobs(list(jobs.values()), [])
    assert finished == ["train lastlayer-causal seed 0", "score lastlayer-causal seed 0"]
