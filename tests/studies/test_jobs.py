"""The commands of a study: which, in which order, of whose words; and what is refused before any of them starts."""

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from studies.jobs import design_words, run, split_words, study_jobs


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
    assert score.words == ("evaluate.py", f"run='{folders[1]}'", "benchmark=docs_smoke", "progress=false")
    assert score.after == ("train model1 seed 2",)
    assert starts.words[1:3] == (f"run=['{folders[0]}','{folders[1]}']", "untrained=only")
    assert starts.after == ("train model1 seed 0", "train model1 seed 2")


def test_the_default_is_the_paper_s_five_designs_and_both_means_with_three_seeds():
    listed = jobs("untrained=false")
    cells = ["eos-causal", "lastlayer-causal", "lastlayer-bi", "multilayer-causal", "multilayer-bi"]
    runs = [f"{cell} seed {seed}" for cell in [*cells, "mean-causal", "mean-bi"] for seed in range(3)]
    assert [job.name for job in listed] == [f"{kind} {run}" for kind in ("train", "score") for run in runs]


def test_a_design_is_named_with_another_attention_than_its_own():
    assert design_words("echo-bi") == ["design=echo", "attn=bi"]
    assert design_words("multilayer-bi_last") == ["pooler=multilayer", "attn=bi_last"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("designs=[eos-causl]", "There is no design 'eos-causl'. Nearest: eos-causal"),
        ("designs=[model1,eos-causal]", "The designs model1 and eos-causal are the same runs"),
        ("designs=[]", "must be a list of designs"),
        ("seeds=[0,-1]", "must be a list of whole numbers, each at least 0"),
        ("jobs=0", "jobs=0 must be a whole number, at least 1"),
        ("seed=1", "seed= is set by study.py, job by job. Give seeds="),
        ("design=model1", "design= is set by study.py, job by job. Give designs="),
        ("run=x", "run= is set by study.py"),
        ("desings=[mean-bi]", "There is no key 'desings'. Nearest: designs"),
        ("lora.rr=2", "There is no key 'lora.rr'"),
        ("nonsense", "is no key=value"),
    ],
)
def test_what_cannot_be_is_refused(word, message):
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        jobs(word)


def test_failed_jobs_are_named_at_the_end(monkeypatch, capsys):
    listed = jobs("designs=[eos-causal]", "seeds=[0]", "untrained=false")

    def run_jobs(given, count, ended):
        ended(given[0], 2, 1.0)
        return {given[0].name: 2}

    monkeypatch.setattr("studies.jobs.run_jobs", run_jobs)
    with pytest.raises(UserError, match=r"1 of 2 jobs failed \(train eos-causal seed 0\)"):
        run(listed, 1)
    assert "[1 of 2] train eos-causal seed 0 FAILED with exit code 2 after 1 s" in capsys.readouterr().out
