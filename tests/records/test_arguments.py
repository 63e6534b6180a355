"""File names on the command line reach the configuration as they were written."""

import pytest

from cli.compose import check_overrides, composed
from cli.errors import UserError
from cli.quoting import joined_late, quoted_files


@pytest.mark.parametrize(
    "path", ["a.jsonl.gz,b.jsonl", "a.jsonl", "my pairs/a (1).jsonl", "it's.jsonl", "pairs/*.jsonl", "a=b.jsonl"]
)
def test_the_value_arrives_unchanged(path):
    words = quoted_files(["data=jsonl", f"data.path={path}"])
    check_overrides("train", words)
    assert composed("train", words).data.path == path


@pytest.mark.parametrize("key", ["runs_dir", "cache_dir"])
@pytest.mark.parametrize("path", ["my runs/a (1)", "/x/seed=0", "it's here", "runs"])
def test_so_does_a_folder(key, path):
    words = quoted_files([f"{key}={path}"])
    check_overrides("train", words)
    assert composed("train", words)[key] == path


def test_a_stage_is_a_list_of_one():
    for path in ("runs/s,objective=mntp/mean-bi/seed=0", "it's here"):
        words = quoted_files([f"lineage={path}"])
        check_overrides("train", words)
        assert composed("train", words).lineage == [path]
    assert quoted_files(["lineage=null", "lineage=['a','b']"]) == ["lineage=null", "lineage=['a','b']"]


@pytest.mark.parametrize(("written", "value"), [("'a,b'", "a,b"), ("[a,b]", ["a", "b"]), ("null", None)])
def test_what_is_quoted_or_a_list_already_is_left_alone(written, value):
    words = quoted_files(["data=jsonl", f"data.path={written}"])
    assert words[1] == f"data.path={written}"
    assert composed("train", words).data.path == value


def test_a_sweep_over_data_sets_is_still_possible():
    words = quoted_files(["data=jsonl", "data.path=choice(a.jsonl,b.jsonl)"])
    check_overrides("train", ["-m", *words])
    with pytest.raises(UserError, match="Add -m"):
        check_overrides("train", words)


def test_other_arguments_stay():
    words = ["-m", "pooler=eos,mean", "model.path=a,b", "data.paths=a,b"]
    assert quoted_files(words) == words


def test_a_key_of_another_member_is_traced_to_it():
    with pytest.raises(UserError, match=r"no key 'data.path'.*It belongs to data=ir_data, data=jsonl"):
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
    assert joined_late(words) == ready
