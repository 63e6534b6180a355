"""The commands of a study: which, in which order, of whose words; and what is refused before any of them starts."""

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from studies.jobs import design_words, split_words, study_jobs


def jobs(*arguments):
    words = split_words(arguments)
    return study_jobs(plain(composed("study", words.study)), words)


def test_seed_by_seed_designs_are_trained_scored_and_compared(tmp_path):
    words = ["designs=[model1,mean-bi]", "seeds=[0,2]", "lora.r=8", f"runs_dir={tmp_path}"]
    listed = jobs(*words, "benchmark=docstrings_smoke", "untrained=true")
    of_seed = ("train model1", "train mean-bi", "score the starts of", "score model1", "score mean-bi", "report after")
    assert [job.name for job in listed] == [f"{name} seed {seed}" for seed in (0, 2) for name in of_seed]
    train, start, score, report = listed[6], listed[8], listed[9], listed[11]
    words = ("train.py", "design=model1", "lora.r=8", f"runs_dir={tmp_path}", "seed=2", "trainer.progress=lines")
    study = f"{tmp_path}/bundled+lora.r-8"
    assert (train.words, train.after) == (words, ())
    run = f"'{study}/eos-causal/seed2'"
    assert score.words == ("evaluate.py", f"run={run}", "benchmark=docstrings_smoke", "progress=false")
    assert score.after == ("train model1 seed 2",)
    assert start.words[1:3] == (f"run=[{run},'{study}/mean-bi/seed2']", "untrained=only")
    assert start.after == ("train model1 seed 2", "train mean-bi seed 2")
    assert report.words[1] == f"scores=['{study}/scores']"
    assert report.words[4:7] == ("factors=[pooler,attn]", "seeds=[0,2]", f"out='{study}/tables'")
    assert set(report.after) == {job.name for job in listed if job.words[0] == "evaluate.py"}


def test_the_default_is_the_paper_s_five_designs_and_both_means_with_three_seeds():
    cells = ["eos-causal", "lastlayer-causal", "lastlayer-bi", "multilayer-causal", "multilayer-bi"]
    cells += ["mean-causal", "mean-bi"]
    runs = [f"{kind} {cell} seed {seed}" for seed in range(3) for kind in ("train", "score") for cell in cells]
    assert [job.name for job in jobs() if "report" not in job.name] == runs


def test_a_report_is_of_the_study_s_designs_alone_and_all_that_they_differ_in_is_a_factor(tmp_path):
    report = jobs("designs=[eos-causal,mean,landmark,matryoshka,echo_long,llm2vec]", f"runs_dir={tmp_path}")[-1].words
    assert report[3] == "against='bundled__eos-causal'"
    assert report[4] == "factors=[pooler,attn,template,max_length,init.merge,objective.matryoshka]"
    assert report[2].startswith("models=['bundled__eos-causal','bundled+pooler.pool_eos-false__mean-causal'")
    assert report[1].count(str(tmp_path)) == 6 == report[2].count("__")


def test_a_design_is_named_with_another_attention_than_its_own():
    assert design_words("echo-bi") == ["design=echo", "attn=bi"]
    assert design_words("multilayer-bi_last") == ["pooler=multilayer", "attn=bi_last"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("designs=[eos-causl]", "There is no design 'eos-causl'. Nearest: eos-causal"),
        ("designs=[model1,eos-causal]", "The designs model1 and eos-causal are the same runs"),
        ("seeds=[0,-1]", "must be a list of whole numbers, each at least 0"),
        ("jobs=0", "jobs=0 must be a whole number, at least 1"),
        ("seed=1", "seed= is set by study.py, job by job. Give seeds="),
        ("desings=[mean-bi]", "There is no key 'desings'. Nearest: designs"),
    ],
)
def test_what_cannot_be_is_refused(word, message):
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        jobs(word)
