"""The commands of a study: which, in which order, of whose words; and what is refused before any of them starts."""

from pathlib import Path

import pytest

import study
from cli.compose import composed, plain
from cli.errors import UserError
from studies.jobs import compared, runs_of, split_words, study_jobs


def jobs(*arguments):
    words = split_words(arguments)
    return study_jobs(plain(composed("study", words.study)), words)


def test_each_design_is_trained_with_each_seed_before_anything_is_scored(tmp_path):
    listed = jobs("designs=[model1,mean-bi]", "seeds=[0,2]", "lora.r=8", f"runs_dir={tmp_path}", "benchmark=docs_smoke")
    names = [job.name for job in listed]
    assert names == [
        *("train model1 seed 0", "train model1 seed 2", "train mean-bi seed 0", "train mean-bi seed 2"),
        *("score the starts of causal", "score the starts of bi"),
        *("score model1 seed 0", "score model1 seed 2", "score mean-bi seed 0", "score mean-bi seed 2"),
    ]
    train, starts, score = listed[1], listed[4], listed[7]
    words = ("train.py", "design=model1", "lora.r=8", f"runs_dir={tmp_path}", "seed=2", "trainer.progress=lines")
    folders = [f"{tmp_path}/embedded+lora.r-8/eos-causal/seed{seed}" for seed in (0, 2)]
    assert (train.words, train.after) == (words, ())
    assert score.words == ("evaluate.py", f"run={folders[1]}", "benchmark=docs_smoke", "progress=false")
    assert score.after == ("train model1 seed 2",)
    assert starts.words[1:3] == (f"run=['{folders[0]}','{folders[1]}']", "untrained=only")
    assert starts.after == ("train model1 seed 0", "train model1 seed 2")


def test_the_default_is_the_paper_s_five_designs_and_both_means_with_three_seeds():
    listed = jobs("untrained=false")
    cells = ["eos-causal", "lastlayer-causal", "lastlayer-bi", "multilayer-causal", "multilayer-bi"]
    cells += ["mean-causal", "mean-bi"]
    runs = [f"{cell} seed {seed}" for cell in cells for seed in range(3)]
    assert [job.name for job in listed] == [f"{kind} {run}" for kind in ("train", "score") for run in runs]
    assert jobs("untrained=false", "seeds=auto") == listed


def test_designs_are_compared_by_the_names_of_their_scores_and_differ_in_what_their_words_set(tmp_path):
    words = split_words(["seeds=auto", f"runs_dir={tmp_path}"])
    found = compared(["model1", "mean-bi", "echo"], words)
    named = "embedded+template-echo+pooler.pool_eos-false"  # a folder of its own
    assert found["models"] == ("embedded__eos-causal", "embedded__mean-bi", f"{named}__mean-causal")
    assert found["scores"] == (tmp_path / "embedded" / "scores", tmp_path / named / "scores")
    assert found["factors"][:2] == ("pooler", "attn")
    assert {key.partition(".")[0] for key in found["factors"][2:]} == {"template"}
    assert compared(["model1"], split_words(["results=there"]))["scores"] == (Path("there"),)


def test_a_design_is_named_with_another_attention_than_its_own():
    words, whole, folder = runs_of("lastlayer_last-bi", split_words([]))
    assert words == ["design=lastlayer_last", "attn=bi"]
    assert (whole["pooler"]["tokens"], whole["attn"]["name"], folder.name) == ("last", "bi", "lastlayer-bi")
    assert runs_of("mean_bi-causal", split_words([]))[2] == runs_of("mean", split_words([]))[2]
    assert runs_of("mean-bi", split_words([]))[0] == ["pooler=mean", "attn=bi"]  # a pooler's name comes first


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("designs=[model9]", r"There is no design 'model9'\. Nearest: model5"),
        ("designs=[eos-by]", r"There is no design 'eos-by'\. Nearest: .*eos-bi"),
        ("designs=eos-causal", "designs=eos-causal must be a list of designs"),
        ("designs=[]", "must be a list of designs"),
        ("seeds=3", r"seeds=3 must be a list of whole numbers, such as \[0,1,2\]"),
        ("seeds=[0,one]", "must be a list of whole numbers"),
        ("seeds=[-1]", "must be a list of whole numbers"),
        ("jobs=0", "jobs=0 must be a whole number, at least 1; null: one per core"),
        ("untrained=also", "untrained=also must be true or false"),
        ("desings=[mean-bi]", r"There is no key 'desings'\. Nearest: designs"),
        ("lora.q=8", r"There is no key 'lora\.q' in conf/train\.yaml"),
        ("benchmark.experiment=2", r"There is no key 'benchmark\.experiment' in conf/evaluate\.yaml"),
        ("seed=1", r"seed= is set by study\.py, job by job\. Give seeds="),
        ("pooler=eos", r"pooler= is set by study\.py, job by job\. Give designs="),
        ("sweep=paper", r"sweep= is set by study\.py, job by job\. Give designs="),
        ("run=runs/a", r"run= is set by study\.py, job by job\. Leave it out, or use python evaluate\.py"),
        ("check=true", r"check= is set by study\.py, job by job\. Leave it out, or use python train\.py"),
        ("designs=[model1,eos-causal]", "The designs model1 and eos-causal are the same runs, in .*eos-causal"),
        ("lora.r=8,16", "lora.r has several values"),
        ("model1", "The argument 'model1' is no key=value"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(word, message):
    with pytest.raises(UserError, match=message):
        jobs(word)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("benchmark=docss", "There is no benchmark 'docss'. Nearest: docs"),
        ("tasks_dir=nowhere", "There is no folder nowhere"),
        ("tasks=[Nope]", "There is no task 'Nope' in mteb"),
        ("overlap=2", "overlap=2 must be a number, at least 0 and at most 1"),
    ],
)
def test_what_scoring_would_refuse_is_said_before_anything_is_trained(monkeypatch, word, message):
    monkeypatch.setattr("sys.argv", ["study.py", "designs=[eos-causal]", "seeds=[0]", "plan=true", word])
    with pytest.raises(UserError, match=message):
        study.main()


def test_a_failed_job_is_named_at_the_end(monkeypatch, tmp_path):
    """What is finished is kept, and the exit code is that of an error."""
    monkeypatch.setenv("TQDM_DISABLE", "1")  # as main sets it
    monkeypatch.setattr("sys.argv", ["study.py", "designs=[eos-causal,mean-bi]", "seeds=[0]", f"runs_dir={tmp_path}"])
    codes = {"train eos-causal seed 0": 2, "train mean-bi seed 0": 0}
    monkeypatch.setattr("studies.rounds.run_jobs", lambda *_: codes)
    with pytest.raises(UserError, match=r"1 of 6 jobs failed \(train eos-causal seed 0\).* the same command goes on"):
        study.main()
