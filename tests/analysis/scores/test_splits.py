"""Which splits and subsets of a task a score is of: mteb's own definitions, refused where designs differ, and said."""

import json

import pytest

from analysis.scores.tasks import benchmark_of
from cli.compose import composed, options, plain
from cli.errors import UserError

OURS = [name for name, about in options("benchmark").items() if about.get("kind") == "mteb" and about["tasks"]]


def add(path, split, subsets):
    """Write further scores of a split into a result."""
    value = json.loads(path.read_text())
    value["scores"][split] = [{"main_score": score, "hf_subset": name} for name, score in subsets.items()]
    path.write_text(json.dumps(value))


def score_of(result, task, model):
    rows = result.compared.frame[(result.compared.frame["task"] == task) & (result.compared.frame["model"] == model)]
    return rows["score"].item(), rows["split"].item(), rows["subsets"].item()


@pytest.fixture
def english(tmp_path, task_writer):
    """Three models of MTEB(eng, v1): MSMARCO has both splits, and on test the order of the models is the other one."""
    for k, model in enumerate(("a", "b", "c")):
        folder = tmp_path / "results" / model / "r"
        for task in ("SciFact", "NFCorpus", "ArguAna"):
            task_writer(folder, task, 0.5 + 0.01 * k)
        add(task_writer(folder, "MSMARCO", 0.9 - 0.1 * k), "dev", {"default": 0.3 + 0.1 * k})
        languages = {"en": 0.5 + 0.1 * k, "de": 0.9 - 0.1 * k}
        add(task_writer(folder, "MassiveIntentClassification", languages), "validation", {"en": 0.0, "de": 0.1})
        task_writer(folder, "BIOSSES.v9", 0.1)
    (tmp_path / "tasks.json").write_text('{"BIOSSES.v9": "STS"}')
    return tmp_path


def test_the_split_that_mteb_scores_is_taken(english, read_words):
    result = read_words(f"scores={english}")
    assert list(result.compared.matrix.loc["MSMARCO", ["a", "b", "c"]]) == [0.3, 0.4, 0.5]
    assert score_of(result, "MSMARCO", "a")[1:] == ("dev", "default")
    assert "Scores are of the split test, but of dev on MSMARCO." in result.notes


@pytest.mark.parametrize(("name", "more", "gone"), [("MTEB(eng, v1)", ["MSMARCO"], ""), ("llm2vec15", [], ", MSMARCO")])
def test_a_benchmark_or_a_choice_of_its_tasks_fixes_tasks_splits_and_subsets(english, read_words, name, more, gone):
    result = read_words(f"scores={english}", f"benchmark={name}")
    shared = ["ArguAna", "MassiveIntentClassification", "NFCorpus", "SciFact"]
    assert sorted(result.compared.matrix.index) == sorted([*shared, *more])
    assert score_of(result, "MassiveIntentClassification", "b") == (0.6, "test", "en")
    notes = " ".join(result.notes)
    assert f"{len(shared) + len(more)} of the {len(benchmark_of(name).tasks)} tasks of {name}" in notes
    assert f"were left out: BIOSSES.v9{gone}." in notes


@pytest.mark.parametrize("name", OURS)
def test_a_choice_of_tasks_is_the_one_that_evaluate_scores(name):
    from evaluation.tasks.chosen import task_set

    chosen = {task: (set(of.splits), set(of.subsets)) for task, of in benchmark_of(name).tasks.items()}
    scored = task_set(plain(composed("evaluate", [f"benchmark={name}"]))).tasks
    assert chosen == {task.metadata.name: (set(task.eval_splits), set(task.hf_subsets)) for task in scored}


@pytest.mark.parametrize("benchmark", ["MTEB(eng, v1)", "MTEB(eng, v2)", "MTEB(fra, v1)", "LongEmbed"])
def test_scores_are_those_of_mteb(tmp_path, benchmark):
    """mteb filters the same files by its own benchmark and takes its own mean."""
    import mteb
    import numpy as np
    from mteb.results import TaskResult

    from analysis.scores.mteb_results import read_task

    random = np.random.default_rng(0)
    definition = benchmark_of(benchmark)
    tasks = {task.metadata.name: task for task in mteb.get_benchmark(benchmark).tasks}
    assert set(definition.tasks) == set(tasks)
    for name, task in tasks.items():
        whole = task.metadata
        subsets = ["default"] if task.is_aggregate else list(whole.hf_subsets)
        scores = {
            split: [
                {"main_score": round(random.random(), 6), "hf_subset": s, "languages": ["eng-Latn"]} for s in subsets
            ]
            for split in dict.fromkeys([*whole.eval_splits, "test", "dev", "train"])
        }
        value = {"task_name": name, "scores": scores, "dataset_revision": "r", "mteb_version": "2.20.0"}
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({**value, "evaluation_time": 1.0, "kg_co2_emissions": None}))
        theirs = TaskResult.from_disk(path).validate_and_filter_scores(task).get_score()
        assert read_task(path, "m", "", benchmark=definition).score == pytest.approx(theirs, abs=1e-12)


def test_mixed_splits_are_refused_where_they_are_compared_alone(english, read_words, task_writer):
    for model, split in (("a", "train"), ("b", "dev"), ("c", "train")):
        task_writer(english / "results" / model / "r", "MSMARCO", 0.5, split=split)
    mixed = r"MSMARCO was scored on train \(default\) for a, c and dev \(default\) for b\."
    with pytest.raises(UserError, match=mixed):
        read_words(f"scores={english}")
    assert "MSMARCO" not in read_words(f"scores={english}", "tasks=[SciFact,NFCorpus,ArguAna]").compared.matrix.index
    assert "MSMARCO" in read_words(f"scores={english}", "models=[a,c]").compared.matrix.index
    with pytest.raises(UserError, match=r"MTEB\(eng, v1\) scores 1 subsets of dev, .* it has train\."):
        read_words(f"scores={english}", "benchmark=MTEB(eng, v1)", "missing=fail")
    dropped = read_words(f"scores={english}", "benchmark=MTEB(eng, v1)")
    assert "MSMARCO" not in dropped.compared.matrix.index
    assert any("what counts (split, subsets): MSMARCO (a, c)." in note for note in dropped.notes)


def test_designs_on_other_subsets_are_not_compared(tmp_path, read_words, task_writer):
    for model, subsets in (("one", {"en-en": 0.5, "es-es": 0.1}), ("two", {"en-en": 0.5})):
        for task in ("SciFact", "BIOSSES", "ArguAna"):
            task_writer(tmp_path / "results" / model / "r", task, 0.5)
        task_writer(tmp_path / "results" / model / "r", "STS17", subsets)
    with pytest.raises(UserError, match=r"STS17 was scored on test \(en-en, es-es\) for one and test \(en-en\)"):
        read_words(f"scores={tmp_path}")
    same = read_words(f"scores={tmp_path}", "benchmark=MTEB(eng, v2)")
    assert score_of(same, "STS17", "one") == (0.5, "test", "en-en")


def test_the_parts_of_an_aggregate_do_not_count_twice(english, read_words, task_writer):
    forums = [f"CQADupstack{name}Retrieval" for name in ("Android", "English", "Gaming")]
    for k, model in enumerate("abc"):
        for task in [*forums, "CQADupstackRetrieval"]:
            task_writer(english / "results" / model / "r", task, 0.3 + 0.01 * k)
    result = read_words(f"scores={english}")
    assert [task for task in result.compared.matrix.index if "CQA" in task] == ["CQADupstackRetrieval"]
    assert any("CQADupstackRetrieval is the mean of 12 tasks, so these are left out" in note for note in result.notes)
    assert len(read_words(f"scores={english}", "tasks=[CQADupstackAndroid*,SciFact]").compared.matrix) == 2
    (english / "results" / "a" / "r" / "CQADupstackRetrieval.json").unlink()
    kept = read_words(f"scores={english}").compared.matrix.index
    assert [task for task in kept if "CQA" in task] == forums, "the aggregate has a hole, so its parts count"


def test_other_texts_of_a_part_are_other_texts_of_the_aggregate(study, read_words):
    for k, design in enumerate(("eos-causal", "mean-bi")):
        key = "_evaluation__inputs__CQADupstackAndroidRetrieval test default"
        study.run(design, {"CQADupstackRetrieval": 0.5, "SciFact": 0.3 + 0.1 * k}, **{key: str(k) * 64})
    with pytest.raises(UserError, match=r"also in evaluation\.inputs\.CQADupstackAndroidRetrieval test default"):
        read_words(f"scores={study.root}")


def test_what_the_files_of_a_task_lack_is_said(study, read_words, spread_scores):
    for k, design in enumerate(("eos-causal", "mean-bi")):
        study.run(design, spread_scores(0.3 + 0.1 * k), _evaluation__left_out={"STS1": {"judgements": 3}})
    notes = read_words(f"scores={study.root}").notes
    assert "Left out of a task's files, since missing or empty there: STS1: 3 judgements." in notes


def test_splits_without_a_rule_are_a_hole(tmp_path, read_words, task_writer):
    for model in ("one", "two"):
        task_writer(tmp_path / "results" / model / "r", "SciFact", 0.5)
        task_writer(tmp_path / "results" / model / "r", "BIOSSES", 0.5)
        add(task_writer(tmp_path / "results" / model / "r", "Mine", 0.5, split="one"), "two", {"default": 0.1})
    (tmp_path / "tasks.json").write_text('{"Mine": "STS"}')
    with pytest.raises(UserError, match="the splits one, two and no test"):
        read_words(f"scores={tmp_path}", "missing=fail")
    assert len(read_words(f"scores={tmp_path}").compared.matrix) == 2


def test_files_say_splits_and_are_read_again(english, analyse_words, tmp_path):
    from analysis.write import write_files

    result = analyse_words(f"scores={english}", "benchmark=MTEB(eng, v1)")
    write_files(result, tmp_path / "out")
    lines = (tmp_path / "out" / "scores.csv").read_text().splitlines()
    assert lines[0] == "design,model,seed,task,type,score,split,subsets,manifest,source"
    assert not any(str(tmp_path) in line for line in lines), "paths of the machine are not for publication"
    assert any(",MSMARCO,Retrieval,0.3,dev,default," in line for line in lines)
    again = analyse_words(f"scores={tmp_path / 'out' / 'scores.csv'}", "benchmark=MTEB(eng, v1)")
    assert score_of(again, "MassiveIntentClassification", "b") == (0.6, "test", "en")
    other = tmp_path / "other.csv"
    other.write_text((tmp_path / "out" / "scores.csv").read_text().replace("\nb,b,", "\nModel 1,b,"))
    assert list(analyse_words(f"scores={other}").compared.designs) == ["a", "Model 1", "c"]
    (tmp_path / "csv.csv").write_text("model,task,score,split\na,NFCorpus,0.1,dev\nb,NFCorpus,0.2,dev\n")
    with pytest.raises(UserError, match=r"NFCorpus .* scores test"):
        analyse_words(f"scores={tmp_path / 'csv.csv'}", "benchmark=MTEB(eng, v1)")


def test_words_that_contradict_or_are_unknown(english, read_words):
    with pytest.raises(UserError, match="benchmark= fixes splits and subsets"):
        read_words(f"scores={english}", "benchmark=MTEB(eng, v1)", "split=dev")
    with pytest.raises(UserError, match=r"is no benchmark of texts .*MTEB\(eng, v1\)"):
        read_words(f"scores={english}", "benchmark=MTEB(eng")
    with pytest.raises(UserError, match=r"benchmark=llm2vec is no .* Nearest: llm2vec15"):
        read_words(f"scores={english}", "benchmark=llm2vec")
