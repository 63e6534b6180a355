"""Two runs that differ in any key never share a folder; a folder of another run is refused."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest

from cli.compose import composed, flat, options, own_keys, plain
from cli.errors import UserError
from evaluation.candidates import candidates
from records.earlier_runs import OTHER_RUNS
from records.files import alone_in
from records.manifest import BOOKKEEPING, SEAL, below, check_seal, different_keys, read_manifest, write_manifest
from records.run_folder import LONGEST_NAME, OF_A_DESIGN, run_folder
from tests.started import run_here
from training.checks import is_finished


def folder(*overrides):
    return run_folder(plain(composed("train", overrides)), overrides)


@pytest.mark.parametrize("study", ["", "' '", ".."])
@pytest.mark.parametrize(
    "command", [["train.py", "check=true"], ["evaluate.py", "run=null", "benchmark=docstrings_smoke"]]
)
def test_a_study_without_a_name_is_refused(command, study, tmp_path):
    done = run_here(*command, f"runs_dir={tmp_path / 'runs'}", f"study={study}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: study=")
    assert not any(tmp_path.iterdir())


def test_the_recipe_of_a_base_is_named_where_it_is_not_its_own():
    of_hub, given = ["model=smollm2_135m", "study=mine"], ["experiment=finetune", "study=mine"]
    names = [folder(*words).parts[-3] for words in (["experiment=finetune", *of_hub], of_hub, given, ["study=mine"])]
    assert names == ["mine", "mine", "mine+experiment-finetune", "mine"]
    assert folder("experiment=bundled", *of_hub).parts[-3] == "mine+experiment-bundled"


def test_stages_and_starts_of_a_study_are_named_always():
    """init=, the Makefile and the stages of LLM2Vec find them by these names."""
    words = ("objective=mntp pooler=mean", "init=mntp objective=simcse pooler=mean", "init=mntp", "init.combine=ties")
    names = [folder("study=s", *each.split()).parts[-3] for each in (*words, "reference_fault=large_head")]
    assert names[:3] == ["s+objective-mntp", "s+objective-simcse+init-mntp", "s+init-mntp"]
    assert names[3:] == ["s+init.combine-ties", "s+reference_fault-large_head"]


def test_bookkeeping_moves_nothing():
    assert folder("resume=false", "logging.csv=false", "trainer.progress=false", "cache_dir=x") == folder()


def test_long_and_odd_names_stay_apart_and_safe():
    one, other = folder("model.path=/a/b c"), folder("model.path=/a/b:c")
    assert one != other
    assert " " not in one.parts[1]
    many = [f"lora.targets=[{','.join(['q_proj'] * n)}]" for n in (40, 41)]
    long, longer = (folder("lora.r=8", m).parts[1] for m in many)
    assert long != longer
    assert long.startswith("bundled+lora.r-8-"), "words stay whole"
    assert len(folder("study=" + "s" * 200, "attn.layers=2", "attn=bi_last").parts[1]) == LONGEST_NAME


def another(value):
    """Another value of the kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [*value, "more"]
    return 7 if value is None else value + (1 if isinstance(value, int | float) else "x")


def one_key_changed(config):
    """Yield (key, the configuration with another value of it) for all that may change a number."""
    for key, value in flat(config).items():
        if not below(key, BOOKKEEPING) and key not in OTHER_RUNS:
            changed = deepcopy(config)
            *above, last = key.split(".")
            inner = changed
            for part in above:
                inner = inner[part]
            inner[last] = another(value)
            yield key, changed


def shared(found):
    """The keys whose names are those of others."""
    names = list(found.values())
    return [key for key, name in found.items() if names.count(name) > 1]


@pytest.mark.slow
def test_runs_that_differ_in_a_key_have_folders_of_their_own():
    words = ("pooler=moee", "model=tiny_moe", "adapter=mixse")
    config = plain(composed("train", words))
    found = {"": run_folder(config, words)}
    found |= {key: run_folder(changed, words) for key, changed in one_key_changed(config)}
    assert len(found) > 90
    assert not shared(found)
    assert all(len(path.parts[1]) <= LONGEST_NAME for path in found.values())


@pytest.mark.slow
def test_encoders_that_no_run_made_and_differ_in_a_key_have_names_of_their_own():
    config = plain(composed("evaluate", ["pooler=moee"]))
    changes = dict(one_key_changed(config)) | {"": config}
    for group in ("model", "attn", "pooler", "template"):
        for name in set(options(group)) - {config[group]["name"]}:
            changes[f"{group}={name}"] = {**config, group: plain(composed("evaluate", [f"{group}={name}"]))[group]}
    elsewhere = ("evaluation.dims", "evaluation.instructions")  # said by the dimension and by the revision
    found = {
        key: candidates(changed)[0].name
        for key, changed in changes.items()
        if below(key.partition("=")[0], ("", *own_keys("encoder"))) and not below(key, elsewhere)
    }
    assert len(found) > 60
    assert not shared(found)


@pytest.mark.slow
def test_in_a_named_study_designs_are_named_and_other_settings_refused():
    """Model, data and schedule are what a study has in common: another value finds its folder taken."""
    usual = plain(composed("train", ["study=x"]))
    found = {"": run_folder(usual, ["study=x"])}
    for key, changed in one_key_changed(usual):
        if below(key, OF_A_DESIGN) and not below(key, ("template",)):
            found[key] = run_folder(changed, ["study=x", f"{key}={json.dumps(flat(changed)[key])}"])
        assert different_keys(usual, changed)
    routers = ("router=random", "router=layer", "experts=3", "experts=4")
    for words in (["template=echo"], *(["adapter=mixse", f"adapter.{word}"] for word in routers)):
        found[words[-1]] = folder("study=x", *words)
    assert len(found) > 25
    assert not shared(found)


FIXED = ("study=held", "data=jsonl", "data.path='a b.jsonl'", "trainer.global_batch_size=32", "trainer.max_steps=9")


@pytest.mark.parametrize("further", [(), ("model=qwen2_0_5b",), ("lora.r=8", "max_length=48")])
def test_a_study_that_is_named_is_its_folder(further):
    assert folder(*FIXED, "pooler=multilayer", "attn=bi", *further).parts == ("runs", "held", "multilayer-bi", "seed0")


def test_what_is_swept_over_is_named_in_a_named_study():
    swept = [folder(*FIXED, f"lora.r={r}", "axes=[lora.r]").parts[1] for r in (8, 16)]
    assert swept == ["held+lora.r-8", "held"], "16 is what every run of the study has that does not say otherwise"
    groups = [folder(*FIXED, f"template={name}").parts[1] for name in ("echo", "instruct")]
    assert groups == ["held+template-echo", "held"]


def test_a_folder_holds_one_configuration(tmp_path):
    config = plain(composed("train"))
    assert not is_finished(tmp_path, config)
    facts = {"config": config, "seed": config["seed"]}
    write_manifest(tmp_path, {**facts, "status": "running"})
    assert not is_finished(tmp_path, config)
    write_manifest(tmp_path, {**facts, "status": "finished"})
    assert is_finished(tmp_path, {**config, "runs_dir": "elsewhere"})
    for key, value, message in (("max_length", 48, "max_length: 64 -> 48"), ("seed", 3, "of seed 0, copied")):
        with pytest.raises(UserError, match=message):
            is_finished(tmp_path, {**config, key: value})


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "cannot be read: .*line 1"), ("[]", "holds no JSON object"), ("{}", "is not of version")],
)
def test_broken_manifests_are_named(tmp_path, text, message):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=message):
        read_manifest(tmp_path)


def test_an_edit_and_a_missing_seal_are_named_and_the_order_of_keys_is_none(tmp_path):
    path = tmp_path / "manifest.json"
    write_manifest(tmp_path, {"loss": 0.1 + 0.2, "path": tmp_path, "nested": {"b": [1, 2.5], "a": "é"}})
    held = json.loads(path.read_text())
    assert read_manifest(tmp_path)["loss"] == 0.1 + 0.2
    check_seal(dict(reversed(held.items())), tmp_path)
    for edit in ({"loss": 0.2}, {"new": None}, {"nested": {"b": [1, 2.5]}}, {SEAL: None}):
        path.write_text(json.dumps(held | edit))
        with pytest.raises(UserError, match=r"manifest\.json was edited by hand"):
            read_manifest(tmp_path)


def test_a_folder_is_of_one_process_and_goes_while_it_is_empty(tmp_path):
    (tmp_path / "study").mkdir()
    folder = tmp_path / "study" / "cell" / "seed0"
    other = pytest.raises(UserError, match=f"Another process is at work in {folder}")
    with alone_in(folder), other, alone_in(folder):
        pass
    assert not (tmp_path / "study" / "cell").exists()
    with pytest.raises(RuntimeError), alone_in(folder):
        (folder / "log").touch()
        raise RuntimeError
    assert [p.name for p in folder.iterdir()] == ["log"]


def test_who_waits_for_a_folder_gets_it(tmp_path):
    def append(word):
        with alone_in(tmp_path / "results", wait=True):
            text = file.read_text() if file.exists() else ""
            time.sleep(0.01)
            file.write_text(text + word)

    file = tmp_path / "file"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, "abcdefghij"))
    assert sorted(file.read_text()) == list("abcdefghij")
