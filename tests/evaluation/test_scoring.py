"""Scores on disk: mteb's layout, nothing computed twice, nothing stale or half-written taken for finished."""

import errno
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.scores.mteb_results import read_results
from analysis.settings import Settings
from cli.errors import UserError
from evaluation import mteb_encoder, scoring
from evaluation.candidates import candidates, configured
from evaluation.command import score_table
from evaluation.instructions import Instructions
from evaluation.results import MANIFEST, written_record
from evaluation.scoring import Options, Outcome, score
from evaluation.tasks.chosen import mteb_task
from evaluation.tasks.folder import folder_tasks


@pytest.fixture
def tasks(folder: Path) -> list:
    return [mteb_task(d) for d in folder_tasks(folder, ["Asked", "Graded", "Pairs"])]


def test_mteb_reads_the_folder_back_and_tasks_and_manifest_lie_beside(tasks: list, candidate) -> None:
    import mteb

    run = candidate()
    outcome = score(run, tasks, Options())
    assert (outcome.folder.parent.name, outcome.folder.name) == (
        "test__eos-causal", f"seed0@{run.encoder.fingerprint[:8]}"
    )  # fmt: skip
    (model,) = mteb.ResultCache(run.results).load_results().model_results
    assert model.model_name == "test/eos-causal"
    assert {r.task_name: r.get_score() for r in model.task_results} == pytest.approx(
        {name: value for name, (_, value) in outcome.scores.items()}
    )
    listed = json.loads((run.results / "tasks.json").read_text())
    assert {name: entry["type"] for name, entry in listed.items()} == {
        "Asked": "Retrieval", "Graded": "STS", "Pairs": "PairClassification"
    }  # fmt: skip
    manifest = json.loads((outcome.folder / MANIFEST).read_text())
    assert (manifest["status"], manifest["evaluation"]["fingerprint"]) == ("finished", run.encoder.fingerprint)


def test_a_finished_task_is_read_again_also_where_nobody_may_write(tasks: list, candidate, bag) -> None:
    encoder, first = bag(), score(candidate(), tasks, Options())
    run = candidate(encoder=encoder)
    before = {path: path.stat().st_mtime_ns for path in run.results.rglob("*")}
    second = score(run, tasks, Options())
    assert (first.computed, second.computed, second.scores) == (3, 0, first.scores)
    assert encoder.seen == []
    assert {path: path.stat().st_mtime_ns for path in run.results.rglob("*")} == before


def test_scores_of_two_programs_say_so_until_all_are_of_one(tasks: list, candidate, monkeypatch) -> None:
    def made_by() -> str:
        return written_record(score(candidate(), tasks, Options()).folder)["encoder"]["code"]

    folder = score(candidate(), tasks[:2], Options()).folder
    first = written_record(folder)["encoder"]["code"]
    monkeypatch.setattr(scoring, "code", lambda pooler: {"sha256": "later", "pooler": "same"})
    assert made_by() == f"{first} -> later"
    (folder / "Pairs.json").unlink()  # made again by the same program
    assert made_by() == f"{first} -> later"
    shutil.rmtree(folder)
    assert made_by() == "later"


def test_a_changed_score_is_computed_again_and_refused_by_the_analysis(tasks: list, candidate) -> None:
    first = score(candidate(), tasks, Options())
    path = first.folder / "Graded.json"
    whole = path.read_text()
    path.write_text(whole.replace('"main_score": 1.0', '"main_score": 1.5'))
    assert path.read_text() != whole
    rows = read_results(first.folder.parents[1], Settings(scores=(first.folder,))).frame
    (problem,) = filter(None, rows["problem"])
    assert "Graded.json was changed since it was scored" in problem
    for _ in ("changed", "half-written"):
        again = score(candidate(), tasks, Options())
        assert (again.computed, again.scores) == (1, first.scores)
        path.write_text('{"task_name": "Graded", "scor')


def test_what_another_command_records_meanwhile_stays(tasks: list, candidate, monkeypatch) -> None:
    """Two commands score tasks of their own for one run: both records of how stand beside the scores."""
    real, other = mteb_encoder.evaluate_task, []

    def meanwhile(*words: Any) -> None:
        if not other:
            other.append(True)
            score(candidate(), tasks[1:], Options())
        real(*words)

    monkeypatch.setattr(mteb_encoder, "evaluate_task", meanwhile)
    folder = score(candidate(), tasks[:1], Options()).folder
    names = {task.metadata.name for task in tasks}
    record = written_record(folder)
    assert record["tasks"].keys() == record["scores"].keys() == names
    assert json.loads((folder.parents[2] / "tasks.json").read_text()).keys() == names


def test_other_data_under_the_same_name_is_computed_again(tasks: list, candidate, folder: Path) -> None:
    score(candidate(), tasks, Options())
    path = folder / "Graded" / "test.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row | {"score": 5 - row["score"]}) + "\n" for row in rows))
    changed = [mteb_task(d) for d in folder_tasks(folder, ["Asked", "Graded", "Pairs"])]
    outcome = score(candidate(), changed, Options())
    assert outcome.computed == 1
    assert outcome.scores["Graded"][1] == pytest.approx(-1.0)


def test_a_changed_prompt_is_another_score_where_prompts_are_read(folder: Path, candidate, bag) -> None:
    def scored(mode: str, prompt: str, name: str = "Graded") -> Outcome:
        (folder / name / "task.json").write_text(json.dumps({"name": name, "type": "STS", "prompt": prompt}))
        return score(candidate(), [mteb_task(folder_tasks(folder, [name])[0])], Options(Instructions(mode)))

    assert [scored("mteb", prompt).computed for prompt in ("apples", "apples", "pears", "apples")] == [1, 0, 1, 1]
    assert [scored("none", prompt).computed for prompt in ("apples", "pears")] == [1, 0]
    shutil.copytree(folder / "Graded", folder / "Other")
    assert [scored("mteb", "plums", name).computed for name in ("Other", "Graded", "Other")] == [1, 1, 0]
    record = written_record(scored("mteb", "plums").folder)
    assert {name: sides["query"] for name, sides in record["instructions_used"].items()} == {
        "Graded": "plums", "Other": "plums"
    }  # fmt: skip


def test_a_score_does_not_depend_on_who_was_scored_before(candidate, folder: Path, tmp_path: Path) -> None:
    (data,) = folder_tasks(folder, ["Clusters"])
    sentences = data.content["test"]["sentences"]
    vague = {"sentences": sentences, "labels": [str(len(text) % 3) for text in sentences]}
    hard = replace(data, content={"test": vague}, settings=data.settings | {"max_documents_per_cluster": 12})
    shared = [mteb_task(hard)]
    after = [score(candidate(pooler=p, salt=p), shared, Options()) for p in ("eos", "mean")][1]
    alone = score(candidate("mean", "mean", results=tmp_path / "alone"), [mteb_task(hard)], Options())
    values = [_scores(outcome, "Clusters")["v_measures"]["Level 0"] for outcome in (after, alone)]
    assert values[0] == values[1]
    assert len(set(values[0])) > 1  # the samples do matter here


def _scores(outcome: Outcome, task: str) -> dict:
    return json.loads((outcome.folder / f"{task}.json").read_text())["scores"]["test"][0]


def test_a_collapsed_encoder_gets_no_score(tasks: list, candidate, bag) -> None:
    class Collapsed(bag):
        def encode(self, texts, instruction="", progress=None):
            return np.ones((len(texts), self.embedding_dim), dtype=np.float32)

    run = candidate(encoder=Collapsed())
    outcome = score(run, tasks, Options())
    assert re.search(r"cosine_spearman of Graded is not a number.*collapse", outcome.failed["Graded"])
    assert outcome.scores.keys() == {"Asked", "Pairs"}
    assert not list(run.results.rglob("Graded.json"))


def test_a_hub_that_cannot_be_reached_is_one_line(tasks: list, candidate, monkeypatch) -> None:
    def load_data(*_: Any, **__: Any) -> None:
        raise ConnectionError("[Errno 111] Connection refused")

    monkeypatch.setattr(tasks[0], "load_data", load_data)
    outcome = score(candidate(), tasks, Options())
    assert "The data set of Asked cannot be read: [Errno 111] Connection refused. Connect" in outcome.failed["Asked"]
    assert outcome.scores.keys() == {"Graded", "Pairs"}, "the others go on"


def test_a_fault_of_the_disk_ends_all(tasks: list, candidate, monkeypatch) -> None:
    def load_data(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tasks[0], "load_data", load_data)
    with pytest.raises(UserError, match="No space"):
        score(candidate(), tasks, Options())


def test_what_is_not_finite_names_run_and_text_before_mteb_computes(tasks: list, candidate, bag, folder) -> None:
    third = folder_tasks(folder, ["Asked"])[0].content["corpus"]["d2"]["text"]

    class Broken(bag):
        def encode(self, texts, instruction="", progress=None):
            rows = super().encode(texts, instruction)
            rows[[text == third for text in texts]] = np.nan
            return rows

    run = candidate(encoder=Broken())
    why = score(run, tasks[:1], Options()).failed["Asked"]
    assert re.match(rf"test/eos-causal seed=0 \(.*\) gives NaN .* first is '{third}'\.", why)
    assert not list(run.results.rglob("Asked.json"))


def test_the_score_is_of_the_subsets_that_are_asked_for(tmp_path: Path) -> None:
    """An earlier command may have left other languages and splits in the file; mteb's own filter is the measure."""
    import mteb
    from mteb.results import TaskResult

    from evaluation.results import finished, main_score

    for name, split in (("MTEB(eng, v1)", "test"), ("MTEB(fra, v1)", "validation")):
        task = {t.metadata.name: t for t in mteb.get_benchmark(name).tasks}["MassiveIntentClassification"]
        assert split in task.eval_splits
        languages = [
            {"hf_subset": s, "main_score": k / 10, "languages": ["eng-Latn"]} for k, s in enumerate(["en", "fr", "de"])
        ]
        other = [{**entry, "main_score": entry["main_score"] / 2} for entry in languages]
        value = {"task_name": task.metadata.name, "dataset_revision": task.metadata.revision, "mteb_version": "2.26.24"}
        value |= {"scores": {"test": languages, "validation": other}, "evaluation_time": 1.0, "kg_co2_emissions": None}
        (tmp_path / f"{task.metadata.name}.json").write_text(json.dumps(value))
        theirs = (
            TaskResult.from_disk(tmp_path / f"{task.metadata.name}.json").validate_and_filter_scores(task).get_score()
        )
        assert finished(tmp_path, task)
        assert main_score(tmp_path, task) == pytest.approx(theirs)


@pytest.fixture
def aggregate(folder: Path):
    """What CQADupstackRetrieval is to its twelve forums: mteb's own aggregate, of two tasks of ours."""
    from mteb.abstasks.aggregate_task_metadata import AggregateTaskMetadata
    from mteb.abstasks.aggregated_task import AbsTaskAggregate

    def make():
        parts = [mteb_task(data) for data in folder_tasks(folder, ["Asked", "Ranked"])]
        about = {"name": "Both", "description": "of both", "main_score": "ndcg_at_10", "type": "Retrieval"}
        metadata = AggregateTaskMetadata(**about, tasks=parts, eval_splits=["test"], eval_langs=["eng-Latn"])
        return type("Both", (AbsTaskAggregate,), {"metadata": metadata})()

    return make


def test_the_parts_of_an_aggregate_are_tasks_like_any_other(aggregate, candidate, bag) -> None:
    run = candidate()
    outcome = score(run, [aggregate()], Options(predictions=True))
    held = {
        name: json.loads((outcome.folder / f"{name}.json").read_text())["scores"]["test"][0]
        for name in ("Asked", "Ranked")
    }
    mean = sum(entry["main_score"] for entry in held.values()) / 2
    assert outcome.scores == {"Both": ("Retrieval", pytest.approx(mean))}
    record = json.loads((outcome.folder / MANIFEST).read_text())["evaluation"]
    assert set(record["tasks"]) == {"Asked", "Ranked", "Both"}
    assert len(list((run.results / "predictions").rglob("*_items.json"))) == 2
    encoder = bag()
    again = score(candidate(encoder=encoder), [aggregate()], Options(predictions=True))
    assert (again.computed, encoder.seen) == (0, [])
    (outcome.folder / "Asked.json").unlink()
    assert score(candidate(), [aggregate()], Options()).computed == 1, "with a part made again, so is the mean"


def of_mteb(base: str, kind: str, score: str, data: dict) -> Any:
    """A task of mteb's own making: its classes, a data set in its layout."""
    import mteb
    from mteb.abstasks.task_metadata import TaskMetadata

    about = {"name": f"Tiny{kind}", "description": "tiny", "dataset": {"path": "org/tiny", "revision": "1"}}
    about |= {"type": kind, "category": "t2t", "eval_splits": ["test"], "eval_langs": ["eng-Latn"], "main_score": score}

    def load_data(self: Any, num_proc: int | None = None, **_: Any) -> None:
        self.dataset, self.data_loaded = data, True

    members = {"metadata": TaskMetadata(**about), "load_data": load_data}
    return type(f"Tiny{kind}", (getattr(mteb.abstasks, f"AbsTask{base}"),), members)()


def test_an_empty_text_of_mteb_is_a_vector_of_zeros(small_model, tmp_path: Path) -> None:
    from datasets import Dataset

    corpus = [{"id": "a", "title": "", "text": "the sum of two arrays"}, {"id": "b", "title": "", "text": " "}]
    corpus += [{"id": "c", "title": "", "text": "the shape and type of its first argument"}]
    corpus += [{"id": "d", "title": "", "text": "</s>"}]  # text, whatever token it is the name of
    queries = [{"id": "q", "text": "the sum of two"}, {"id": "r", "text": "shape and type of its"}]
    split = {"corpus": Dataset.from_list(corpus), "queries": Dataset.from_list(queries), "top_ranked": None}
    split["relevant_docs"] = {"q": {"a": 1, "b": 1}, "r": {"c": 1}}
    asked = of_mteb("Retrieval", "Retrieval", "ndcg_at_10", {"default": {"test": split}})
    pairs = {"sentence1": ["the sum", "a type", "", "array"], "sentence2": ["the sum", "", "", "shape"]}
    graded = of_mteb("STS", "STS", "cosine_spearman", {"test": Dataset.from_dict(pairs | {"score": [5.0, 0, 1, 3]})})
    words = ["run=null", f"model.path={small_model}", "pooler=mean", "precision=fp32", f"results={tmp_path}"]
    (candidate,) = candidates(configured([*words, "instructions=mteb"]))
    outcome = score(candidate, [asked, graded], Options(Instructions("mteb"), predictions=True))
    assert not outcome.failed
    (file,) = tmp_path.rglob("TinyRetrieval_predictions.json")
    ranked = json.loads(file.read_text())["default"]["test"]
    assert all(scores["b"] == 0 and scores.keys() == set("abcd") for scores in ranked.values())
    (file,) = tmp_path.rglob("TinySTS_predictions.json")
    assert json.loads(file.read_text())["default"]["test"]["cosine_scores"][1:3] == [0.5, 1], "by mteb's formula"


REPORTED = {"A": ("Retrieval", 0.2), "B": ("Retrieval", 0.4), "C": ("STS", 0.9)}


def test_each_task_counts_once_in_its_type_and_each_type_once_in_the_mean() -> None:
    outcome = Outcome("x", Path(), REPORTED)
    head, row = score_table([outcome]).splitlines()
    assert " ".join(head.split()) == "mean main score Retrieval (2) STS (1) mean of types"
    assert row.split() == ["x", "0.3000", "0.9000", "0.6000"]
    *_, lacking = score_table([outcome, Outcome("y", Path(), {"A": REPORTED["A"], "C": REPORTED["C"]})]).splitlines()
    assert lacking.split() == ["y", "0.9000"], "a mean of fewer tasks is none"
    *_, failed = score_table([Outcome("z", Path(), failed={"A": "why"})]).splitlines()
    assert failed.split() == ["z"]
