"""A misspelt word is one line with the nearest valid names; what a value says reaches the configuration unchanged."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from cli.compose import check_sweep, composed, flags_and_words, late, parsed, quoted, readable
from cli.errors import UserError
from evaluation.candidates import evaluate_words


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("pooler=multilayr", "no pooler 'multilayr'. Nearest: multilayer"),
        ("trainer.max_step=3", "no key 'trainer.max_step' in conf/train.yaml. Nearest: trainer.max_steps"),
        ("data.path=a.txt", "It belongs to data=classes, data=graded, data=ir_data, data=jsonl, data=text"),
        ("hydra/launcher=basc", "no hydra/launcher 'basc'. Nearest: basic"),
        ("seed=${nothing}", "Interpolation key 'nothing' not found"),
        ("seed=0,1", "Ambiguous value for argument 'seed=0,1' 1. To use it as a list, use key=[value1,value2]"),
        ("pooler='eos,mean'", "no pooler 'eos,mean'. Nearest: mean, layermean, eos. A run of each: -m"),
        ("pooler=[eos,mean]", "no option of pooler. Give one of them, or a run of each: -m"),
        ("attn=true", "cannot be composed: Config group override must be a string"),
    ],
)
def test_misspelt(word, message):
    with pytest.raises(UserError, match=message.replace(".", r"\.").replace("+", r"\+").replace("[", r"\[")):
        composed("train", [word])


def test_a_group_of_another_program_is_refused():
    with pytest.raises(UserError, match=r"no group 'reference_fault' in conf/evaluate.yaml. Leave it out"):
        composed("evaluate", ["reference_fault=one_key"])


def test_a_plus_makes_no_new_key():
    with pytest.raises(UserError, match="There is no key 'foo'"):
        composed("train", readable(["+foo=1"]))


def test_what_is_free_may_be_added():
    composed("train", ["+model.architecture.any=1", "+data.sources.more={path: a}"])


@pytest.mark.parametrize("words", [["lora.r"], ["-m", "lora.r"], ["--lora.r=8"], ["-m", "--lora.r", "8"]])
def test_a_word_without_a_value_or_with_dashes_is_refused(words):
    with pytest.raises(UserError, match=r"'(lora.r|--lora.r.*)' is no key=value, or .* See python train.py --help"):
        flags_and_words("train.py", words)


def test_flags_of_hydra_stay_as_they_are():
    assert flags_and_words("train.py", ["--cfg", "job", "lora.r=8", "-p", "lora"]) == (
        ["--cfg", "job", "-p", "lora"],
        ["lora.r=8"],
    )


@pytest.mark.parametrize("path", ["my runs/a (1).jsonl", "/x/seed=0/a.jsonl", "it's here", "runs/s+lora.r-8/eos/seed0"])
def test_any_value_may_name_a_file(path):
    cfg = composed("train", readable(["data=jsonl", f"data.path={path}"]))
    assert cfg.data.path == path


@settings(deadline=None, database=None)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1))
def test_quotes_keep_every_text(text):
    word = parsed(f"data.path={quoted(text)}")
    assert word
    assert word.value() == text


TEXTS = [
    "query: ",
    " a",
    "Find, then read",
    "a: b, c: d",
    "'x' y",
    "{a}.jsonl",
    "[1] mö",
    "a.jsonl,ä.jsonl",
    "übung (1)",
]


@pytest.mark.parametrize("key", ["data.path", "data.instruction", "model.path", "study"])
@pytest.mark.parametrize("text", TEXTS)
def test_paths_and_texts_are_read_as_typed_under_every_key(key, text):
    _, words = flags_and_words("train.py", ["data=jsonl", f"{key}={text}"])
    assert OmegaConf.select(composed("train", words), key) == text


def test_items_of_a_list_are_read_as_typed():
    _, words = flags_and_words("evaluate.py", ["run=[my runs/a (1),mö/b,runs/s+lora.r-8/c]"])
    assert composed("evaluate", words).run == ["my runs/a (1)", "mö/b", "runs/s+lora.r-8/c"]
    with pytest.raises(UserError, match=r"study='a'b' cannot be read"):
        readable(["study='a'b'"])


def test_every_value_of_a_sweep_is_checked_before_its_first_run():
    several = ["pooler=eos,mean", "attn=causal,bi", "seed=0,1", "lora.r=8"]
    assert check_sweep("train", several, True) == ["pooler", "attn", "seed"]
    assert check_sweep("train", ["design=model4,model5", "pooler.mlp=false"], True) == ["design"]
    assert check_sweep("train", ["reference_fault=glob(*,exclude=[a*])"], True) == ["reference_fault"]
    for words in (["pooler=eos,meen"], ["attn=choice(bi,uni)"], ["lora.rr=1,2"]):
        with pytest.raises(UserError, match=r"Nearest|Valid"):
            check_sweep("train", words, True)


def test_a_key_of_one_pooler_waits_for_the_job_of_a_sweep():
    words = ["design=model4,model5", "pooler.mlp=false", "pooler.num_queries=1,4", "lora.r=8"]
    assert late(words) == ["design=model4,model5", "pooler.mlp=choice(false)", "pooler.num_queries=1,4", "lora.r=8"]


@pytest.mark.parametrize(
    ("words", "ready"),
    [
        (["benchmark=docstrings_dev"], ["benchmark=docstrings_dev"]),
        (["benchmark=MTEB(eng, v2)"], ["benchmark=mteb", "benchmark.name='MTEB(eng, v2)'"]),
        (["tasks=[SciFact]"], ["tasks=[SciFact]", "~benchmark"]),
        (["run=a b(1)", "benchmark=docstrings"], ["run='a b(1)'", "benchmark=docstrings"]),
    ],
)
def test_words_of_evaluate(words, ready):
    assert evaluate_words(words) == ready
    composed("evaluate", ready)


@pytest.mark.parametrize("word", ["pooler=mean", "normalize=false", "seed=1", "precision=fp32", "init=mntp"])
def test_what_a_run_fixes_is_refused_beside_it(word):
    with pytest.raises(UserError, match="has no effect with run="):
        evaluate_words(["run=runs/a", word])
    assert evaluate_words(["run=null", word])
