"""A misspelt word on the command line is one line with the nearest valid names."""

import re

import pytest
from omegaconf import OmegaConf

from cli.compose import CONF, check_overrides, composed, flat, options, plain
from cli.errors import UserError


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("pooler=multilayr", "no pooler 'multilayr' in conf/pooler. Nearest: multilayer"),
        ("attn=bidi", "Nearest: bi"),
        ("trainer.max_step=3", "no key 'trainer.max_step' in conf/train.yaml. Nearest: trainer.max_steps"),
        ("modle=tiny", "Nearest: model"),
        ("experiment=paper/mistrl", "Nearest: paper/mistral_7b"),
        ("divergence=temprature", "no divergence 'temprature' in conf/tables/divergence.yaml. Nearest: temperature"),
        ("design=multilayer_al", "Nearest: multilayer_all"),
        ("published=gritlm", "no 'published' in conf/. It is called design."),
        ("cell=m4", "no 'cell' in conf/. It is called design."),
        ("reading.pool_bos=true", "no 'reading' in conf/. It is called token_choice."),
        ("data.path=a.txt", "It belongs to data=classes, data=graded, data=ir_data, data=jsonl, data=text"),
        ("lora.r", "key=value"),
        ("seed=0,1", "Add -m"),
        ("data=null", "data=null chooses no option of data. Give one of classes, docstring_classes"),
        ("attn=true", "attn=true chooses no option of attn. Give one of bi, bi_last, causal."),
        ("trainer=3", "trainer=3 chooses no option of trainer"),
        ("pooler=[eos,mean]", "would merge options of pooler. Give one of them, or a run of each: -m pooler=eos,mean."),
        ("design=[model1, 'model5']", "a run of each: -m design=model1,model5."),
        ("sweep=[factorial,paper]", "would merge options of sweep"),
        ("~pooler", "~pooler would delete a key that train.py needs. Write key=value."),
        ("=3", "=3 names no key. Write key=value."),
        ("lora={rank: 3}", "no key 'lora.rank' in conf/train.yaml. Nearest: lora"),
    ],
)
def test_misspelt(word, message):
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        check_overrides("train", [word])


@pytest.mark.parametrize(
    "word",
    [
        *("+model.lora_targets=[q_proj]", "++lora.r=8", "+data.sources.more={path: a}", "+model.architecture.any=1"),
        *("+logging.settings.any=1", "+hydra.job.chdir=false", "+data.mix={pairs: 1}"),
    ],
)
def test_what_an_option_or_a_free_key_has_may_be_added(word):
    check_overrides("train", [word])


@pytest.mark.parametrize(
    ("word", "key", "mend"),
    [
        ("+foo=1", "foo", "Valid: accelerator, adapter, attn, axes, backbone,"),
        ("+lora={rank: 3}", "lora.rank", "Nearest: lora.r, lora.start, lora.alpha."),
        ("+model.lora_target=[q_proj]", "model.lora_target", "Nearest: model.lora_targets"),
        ("++trainer.max_step=3", "trainer.max_step", "Nearest: trainer.max_steps"),
        ("+data.sources.pairs.colum=1", "data.sources.pairs.colum", "Nearest: data.column"),
        ("+run=a", "run", "Nearest: runs_dir."),
    ],
)
def test_what_plus_would_add_for_nobody_is_refused(word, key, mend):
    with pytest.raises(UserError, match=re.escape(f"no key '{key}', so nothing would read what + adds. {mend}")):
        check_overrides("train", [word])


def test_each_program_has_keys_of_its_own_to_add():
    composed("evaluate", ["++run=a", "++seed=1"])
    with pytest.raises(UserError, match=r"no key 'trainer\.maxsteps', so nothing"):
        composed("evaluate", ["+trainer.maxsteps=1"])
    with pytest.raises(UserError, match="no key 'lora', so nothing"):
        composed("mine", ["+lora=1"])


@pytest.mark.parametrize("program", ["train", "evaluate"])
def test_a_value_in_the_place_of_keys_that_others_are_computed_from(program):
    with pytest.raises(UserError, match="token_choice has keys of its own, from which others are computed"):
        plain(composed(program, ["token_choice=null"]))


def test_every_value_of_a_sweep_is_checked_before_its_first_run():
    with pytest.raises(UserError, match="no pooler 'meen'"):
        check_overrides("train", ["-m", "pooler=eos,meen"])
    check_overrides("train", ["-m", "pooler=eos,mean", "attn=causal,bi", "seed=0,1"])


@pytest.mark.parametrize("group", [path.stem for path in (CONF / "tables").glob("*.yaml")])
def test_a_table_is_read_as_omegaconf_reads_it(group):
    assert options(group) == OmegaConf.to_container(OmegaConf.load(CONF / "tables" / f"{group}.yaml"))


def test_flat():
    assert flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "a.c": {}, "d": [1]}


def test_composing_inside_a_composition_puts_the_outer_one_back():
    from hydra.core.global_hydra import GlobalHydra

    before = GlobalHydra.instance().hydra
    composed("train")
    assert GlobalHydra.instance().hydra is before
