"""File names on the command line reach the configuration as they were written."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from cli.compose import check_overrides, composed
from cli.errors import UserError
from cli.quoting import evaluate_words, quoted, train_words


@pytest.mark.parametrize(
    "path", ["a.jsonl.gz,b.jsonl", "a.jsonl", "my pairs/a (1).jsonl", "it's.jsonl", "pairs/*.jsonl", "a=b.jsonl"]
)
def test_the_value_arrives_unchanged(path):
    words = train_words(["data=jsonl", f"data.path={path}"])
    check_overrides("train", words)
    assert composed("train", words).data.path == path


@pytest.mark.parametrize("key", ["runs_dir", "cache_dir"])
@pytest.mark.parametrize("path", ["my runs/a (1)", "/x/seed0", "it's here", "runs"])
def test_so_does_a_folder(key, path):
    words = train_words([f"{key}={path}"])
    check_overrides("train", words)
    assert composed("train", words)[key] == path


def test_any_value_may_name_a_run_folder():
    """Such as a base that a run has exported, or its adapter under foreign=; functions of Hydra keep their own "="."""
    place = "runs/a/eos-bi/seed0/adapter"
    assert composed("train", train_words([f"model.path={place}"])).model.path == place
    words = evaluate_words([f"foreign={place}", f"model.path={place}", "benchmark=docs"])
    cfg = composed("evaluate", words)
    assert (cfg.foreign, cfg.model.path) == (place, place)
    assert train_words(["-m", "seed=range(start=1,stop=3)"]) == ["-m", "seed=range(start=1,stop=3)"]


def test_a_stage_is_a_list_of_one():
    for path in ("runs/s+objective-mntp/mean-bi/seed0", "it's here"):
        words = train_words([f"lineage={path}"])
        check_overrides("train", words)
        assert composed("train", words).lineage == [path]
    assert train_words(["lineage=null", "lineage=['a','b']"]) == ["lineage=null", "lineage=['a','b']"]


@pytest.mark.parametrize(("written", "value"), [("'a,b'", "a,b"), ("[a,b]", ["a", "b"]), ("null", None)])
def test_what_is_quoted_or_a_list_already_is_left_alone(written, value):
    words = train_words(["data=jsonl", f"data.path={written}"])
    assert words[1] == f"data.path={written}"
    assert composed("train", words).data.path == value


def test_a_sweep_over_data_sets_is_still_possible():
    words = train_words(["data=jsonl", "data.path=choice(a.jsonl,b.jsonl)"])
    check_overrides("train", ["-m", *words])
    with pytest.raises(UserError, match="Add -m"):
        check_overrides("train", words)


def test_other_arguments_stay():
    words = ["-m", "pooler=eos,mean", "model.path=a,b", "data.paths=a,b"]
    assert train_words(words) == words


def test_a_key_of_another_member_is_traced_to_it():
    with pytest.raises(UserError, match=r"no key 'data.path'.*It belongs to data=.*data=ir_data, data=jsonl"):
        composed("train", ["data.path=a"])


def test_the_nearest_key_is_of_the_chosen_member():
    with pytest.raises(UserError, match=r"no key 'data.paht'.*Nearest: data.path"):
        composed("train", ["data=jsonl", "data.paht=a"])


@pytest.mark.parametrize(
    ("words", "ready"),
    [
        (
            ["-m", "design=model4,model5", "pooler.mlp=false"],
            ["-m", "design=model4,model5", "pooler.mlp=choice(false)"],
        ),
        (["sweep=matched", "pooler.tokens=last"], ["sweep=matched", "pooler.tokens=choice(last)"]),
        (["-m", "design=model4,model5", "pooler.heads=1,4"], ["-m", "design=model4,model5", "pooler.heads=1,4"]),
        (["-m", "pooler=eos,mean", "lora.r=8"], ["-m", "pooler=eos,mean", "lora.r=8"]),
        (["pooler=lastlayer", "pooler.mlp=false"], ["pooler=lastlayer", "pooler.mlp=false"]),
    ],
)
def test_a_pooler_key_waits_for_the_pooler_of_its_job(words, ready):
    assert train_words(words) == ready


@pytest.mark.parametrize(
    "value", ["a", "it's", "a\\b", "end\\", "\\'", "a\\\\'b", "a,b=c [d]", '"quoted"', "$x ${y} ü"]
)
def test_a_quoted_value_is_read_as_it_stands(value):
    (override,) = OverridesParser.create().parse_overrides([f"key={quoted(value)}"])
    assert override.value() == value


def test_every_command_quotes_its_paths_in_the_same_way():
    path = "runs/it's a=b,c\\d"
    assert train_words([f"data.path={path}"]) == [f"data.path={quoted(path)}"]
    assert evaluate_words([f"results={path}"]) == [f"results={quoted(path)}"]
    assert evaluate_words([f"out={path}"], ["out"]) == [f"out={quoted(path)}"]
