"""Two runs that differ in any key never share a folder; a folder of another run is refused."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from records.files import alone_in
from records.manifest import SEAL, check_seal
from records.run_folder import RunFolder, run_folder
from tests.started import run_here


def folder(*overrides):
    return run_folder(plain(composed("train", overrides)), overrides).path


def test_the_default_cell():
    found = folder("pooler=multilayer", "attn=bi", "seed=3", "runs_dir=r")
    assert found.parts == (
        "r",
        "embedded",
        "multilayer-bi",
        "seed3",
    )


@pytest.mark.parametrize(
    "other",
    [
        "lora.r=8",
        "trainer.max_steps=3",
        "pooler.num_queries=8",
        "lora.targets=[q_proj]",
        "model=qwen2_0_5b",
        "study=mine",
    ],
)
def test_any_other_key_moves_the_study(other):
    usual = folder("pooler=multilayer", "attn=bi")
    moved = folder("pooler=multilayer", "attn=bi", other)
    assert moved != usual
    assert moved.parts[-2:] == usual.parts[-2:]


@pytest.mark.parametrize("study", ["", "' '", ".."])
@pytest.mark.parametrize("command", [["train.py", "check=true"], ["evaluate.py", "run=null", "benchmark=docs_smoke"]])
def test_a_study_without_a_name_is_refused(command, study, tmp_path):
    """Its folder would be runs_dir itself, or the one above; without a text there would be a trace."""
    done = run_here(*command, f"runs_dir={tmp_path / 'runs'}", f"study={study}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: study=")
    assert not any(tmp_path.iterdir())


def test_cells_of_a_study_stand_side_by_side():
    assert folder("design=model5").parent.parent == folder("design=model1").parent.parent == folder().parent.parent
    assert folder("design=model5") == folder("pooler=multilayer", "attn=bi")


def test_what_a_group_chooses_is_named_once():
    assert folder("divergence=large_head").parts[-3] == "embedded+divergence-large_head"
    assert folder("divergence=all").parts[-3] == "embedded+divergence-all"


def test_bookkeeping_moves_nothing():
    assert folder("resume=false", "logging.csv=false", "trainer.progress=false", "cache_dir=x") == folder()


def test_long_and_odd_names_stay_apart_and_safe():
    one, other = folder("model.path=/a/b c"), folder("model.path=/a/b:c")
    assert one != other
    assert " " not in one.parts[1]
    many = [f"lora.targets=[{','.join(['q_proj'] * n)}]" for n in (40, 41)]
    long, longer = (folder(m) for m in many)
    assert long != longer
    assert len(long.parts[1]) < 140


FIXED = (
    "study=held",
    "data=jsonl",
    "data.path='a b.jsonl'",
    "trainer.global_batch_size=32",
    "trainer.max_steps=9",
    "normalize=false",
)


@pytest.mark.parametrize("further", [(), ("model=qwen2_0_5b",), ("template=echo",), ("lora.r=8", "max_length=48")])
def test_a_study_that_is_named_is_its_folder(further):
    assert folder(*FIXED, "pooler=multilayer", "attn=bi", *further).parts == ("runs", "held", "multilayer-bi", "seed0")


@pytest.mark.parametrize(
    ("words", "cell"),
    [  # keys that the usual pooler, attention, data set or adapter does not have
        ("pooler=multilayer pooler.tokens=all", "x/multilayer-causal"),
        ("design=model3 pooler.mlp=false", "x/multilayer-causal"),
        ("divergence=all pooler=lastlayer pooler.num_queries=3", "x+divergence-all/lastlayer-causal"),
        ("attn=bi_last attn.layers=2", "x/eos-bi_last"),
        ("adapter=mixse adapter.top_k=2", "x/eos-causal"),
        ("data=mix data@data.sources.classes=classes data.sources.classes.path=l.jsonl", "x/eos-causal"),
        (
            "objective=mixed objective.class_temperature=.2",
            "x+objective-mixed+objective.class_temperature-0.2/eos-causal",
        ),
    ],
)
def test_keys_that_one_member_of_a_group_alone_has(words, cell):
    found = folder("study=x", *words.split())
    assert str(found) == f"runs/{cell}/seed0"


def test_what_is_swept_over_is_named_in_a_named_study():
    swept = [folder(*FIXED, f"lora.r={r}", "axes=[lora.r]").parts[1] for r in (8, 16)]
    assert swept == ["held+lora.r-8", "held"], "16 is what every run of the study has that does not say otherwise"
    groups = [folder(*FIXED, f"template={name}", "axes=[template]").parts[1] for name in ("echo", "instruct")]
    assert groups == ["held+template-echo", "held"]
    mlp = folder(*FIXED, "pooler=lastlayer", "pooler.mlp=false", "axes=[pooler.mlp]")
    assert mlp.parts[1] == "held+pooler.mlp-false"


@pytest.mark.parametrize(
    ("words", "name"),
    [  # make designs, make llm2vec and conf/experiment/llm2vec find these by their names
        (["study=designs", "attn=bi", "objective=mntp", "pooler=mean"], "designs+objective-mntp"),
        (["study=designs", "attn=bi", "stages=mntp", "objective=simcse", "pooler=mean"],
         "designs+objective-simcse+stages-mntp"),
        (["design=echo_long", "study=designs", "trainer.progress=lines"],
         "designs+template-echo+max_length-128+pooler.pool_eos-false"),
        (["design=llm2vec", "study=designs"], "designs+stages-mntp_simcse+pooler.pool_eos-false"),
        (["experiment=llm2vec/mntp", "model=mistral_7b", "study=mistral_7b"],
         "mistral_7b+experiment-llm2vec.mntp"),
        (["objective=mntp", "study=mine", "data=text", "data.path=a.txt", "pooler=mean"], "mine+objective-mntp"),
        (["experiment=half", "study=mine", "lora.r=8"], "mine+experiment-half"),
    ],
)  # fmt: skip
def test_designs_and_stages_of_a_study_are_named_always(words, name):
    assert folder(*words).parts[1] == name


def test_claim(tmp_path):
    config = plain(composed("train"))
    run = RunFolder(tmp_path / "run")
    assert run.claim(config) is False
    run.write({"config": config, "status": "running"})
    assert run.claim(config) is False
    run.write({"config": config, "status": "finished"})
    assert run.claim({**config, "runs_dir": "elsewhere"}) is True
    with pytest.raises(UserError, match="max_length: 64 -> 48"):
        run.claim({**config, "max_length": 48})


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "line 1: not valid JSON"), ("[]", "holds no JSON object"), ("{}", "is not of version 2")],
)
def test_broken_manifests_are_folder(tmp_path, text, message):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=message):
        RunFolder(tmp_path).manifest()


def test_a_mix_is_named_by_its_shares_and_by_sources_of_its_own():
    assert folder("data=mix", "data.mix.classes=.1").parts[-3] == "embedded+data-mix+data.mix.classes-0.1"
    other = folder("data=mix", "data@data.sources.pairs=jsonl", "data.sources.pairs.path=a").parts[-3]
    assert other == "embedded+data-mix+data_data.sources.pairs-jsonl+data.sources.pairs.path-a" + other[-9:]


def test_an_edit_and_a_missing_seal_are_named_and_the_order_of_keys_is_none(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write({"loss": 0.1 + 0.2, "path": tmp_path, "nested": {"b": [1, 2.5], "a": "é"}})
    held = json.loads(folder.manifest_path.read_text())
    assert folder.manifest()["loss"] == 0.1 + 0.2
    check_seal(dict(reversed(held.items())), tmp_path)
    for edit in ({"loss": 0.2}, {"new": None}, {"nested": {"b": [1, 2.5]}}, {SEAL: None}):
        folder.manifest_path.write_text(json.dumps(held | edit))
        with pytest.raises(UserError, match=r"manifest\.json was edited by hand"):
            folder.manifest()


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
