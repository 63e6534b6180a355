"""Tasks as jobs that share a results folder: one table, nothing twice, and the same command goes on."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest
from mteb import TaskResult, get_task
from mteb.models.model_meta import ModelMeta

from cli.errors import UserError
from evaluation import results
from evaluation.command import configured, run
from evaluation.mteb_encoder import SharedCache
from evaluation.shards import Shards, deal_out
from tests.started import run_here

TASKS = ["Asked", "Graded", "Pairs", "Classes"]


@pytest.fixture
def words(small_model, folder, tmp_path):
    usual = [f"model.path={small_model}", "attn=bi", "pooler=mean", "max_length=48", "accelerator=cpu", "study=s"]
    places = [f"tasks_dir={folder}", f"cache_dir={tmp_path / 'cache'}", f"runs_dir={tmp_path}"]
    return [*usual, *places, "progress=false", f"tasks=[{','.join(TASKS)}]"]


def scores(place: Path) -> dict[str, dict]:
    """Path below the results -> the scores of a file, and of run_settings.jsonl its tasks."""
    files = [f for f in place.glob("results/*/*/*.json") if f.stem in TASKS]
    found = {str(f.relative_to(place)): json.loads(f.read_text())["scores"] for f in files}
    for file in place.glob("results/*/*/run_settings.jsonl"):
        found["settings"] = sorted(json.loads(line)["task"] for line in file.read_text().splitlines())
    return found


def test_jobs_make_the_table_of_one_command_and_go_on_where_one_was_killed(words, tmp_path):
    """The first job's tasks were scored when all was killed: they are not scored again."""
    whole, dealt_out = tmp_path / "whole", tmp_path / "dealt"
    alone = run(configured([*words, f"results={whole}"]))
    run(configured([*words[:-1], "tasks=[Graded]", f"results={dealt_out}"]))
    before = {file: file.stat().st_mtime_ns for file in dealt_out.rglob("Graded.json")}
    command = ["evaluate.py", *words, f"results={dealt_out}", "shards=2", "launcher=none"]
    done = run_here(*command)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("3 tasks to score, in 2 jobs: ")
    assert done.stdout.count("new scores in") == 2
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert len(before) == 1
    assert scores(dealt_out) == scores(whole)
    assert scores(whole)["settings"] == sorted(TASKS)
    table = done.stdout.split("\n\n")[-2]
    mean = sum(score for _, score in alone[0].scores.values()) / len(TASKS)
    assert table.splitlines()[1].endswith(f" {mean:.4f}"), "each of the four types has one task"
    again = run_here(*command)
    assert again.stdout.startswith("All is scored.")
    assert table in again.stdout
    next(dealt_out.rglob("Asked.json")).unlink()
    with pytest.raises(UserError, match=r"lacks 1 scores after all jobs, of Asked first\. Give the same"):
        Shards.of(configured([*words, f"results={dealt_out}"])).outcomes()


def test_tasks_that_share_texts_go_to_one_job_and_jobs_are_of_like_size():
    """Six of a package's seven tasks read the same documents, and classification reads longer ones."""
    shards = Shards.of(configured(["benchmark=docs_smoke", "results=nowhere"]))
    every = [task.metadata.name for task in shards.tasks.tasks]
    alone = [name for name in every if name.endswith("Classification") and "Pair" not in name]
    assert sorted(shards.dealt(2)) == sorted([alone, [name for name in every if name not in alone]])
    more = shards.dealt(5)
    assert len(more) == 5
    assert sorted(chain.from_iterable(more)) == sorted(every)
    of_mteb = Shards.of(configured(["tasks=[STS12,NFCorpus,STS13]", "results=nowhere"]))
    assert of_mteb.dealt(2) == [["NFCorpus"], ["STS12", "STS13"]], "by mteb's own statistics"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("shards=0", "shards=0 must be a whole number, at least 1; null: no jobs"),
        ("foreign=x", "foreign= does not go with shards= or launcher="),
        ("launcher=slurm launcher.gpus=-1", "launcher.gpus=-1 must be a whole number"),
    ],
)
def test_what_does_not_go_with_jobs_is_one_line(word, said):
    with pytest.raises(UserError, match=said):
        deal_out(configured(["shards=2", *word.split()]))


def test_settings_of_results_that_are_saved_at_the_same_time_are_all_kept(tmp_path):
    names = [f"STS{n}" for n in range(12, 17)]
    meta = ModelMeta.create_empty(overwrites={"name": "a/b", "revision": "c"})
    entry = {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": 0.5}
    kept = {"mteb_version": "2", "scores": {"test": [entry]}, "evaluation_time": 1.0}
    revision = {"dataset_revision": get_task("STS12").metadata.revision}
    made = [TaskResult.from_dict({"task_name": name, **revision, **kept}) for name in names]
    with ThreadPoolExecutor(len(made)) as pool:
        list(pool.map(lambda result: SharedCache(tmp_path).save_to_cache(result, meta, encode_kwargs={}), made))
    place = tmp_path / "results" / "a__b" / "c"
    assert sorted(json.loads(line)["task"] for line in (place / "run_settings.jsonl").read_text().splitlines()) == names
    assert all(results.read_object(place / f"{name}.json") for name in names)
