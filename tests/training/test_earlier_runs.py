"""Stages merged into the base: their sum, their order, what is refused, and how later runs carry them."""

import shutil

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.copies import OverlapCount, key_of, place
from encoders.adapter import merge_stages
from encoders.backbone import load_backbone
from encoders.loading import build_encoder, load_run, untrained
from encoders.loading import loaded as loaded_from
from encoders.precision import PRECISIONS
from records.earlier_runs import ADAPTER, read_stages, recorded_stages, texts_read
from records.manifest import read_manifest, write_manifest
from records.run_folder import run_folder
from tests.training.raw_stages import quick_stage
from training.run import train_run

CPU = torch.device("cpu")
OF_MISTRAL = ["model=mistral_7b", "study=mistral_7b"]
EMBEDDED = (
    ["study=llm2vec"],
    {"mntp": ["study=llm2vec", "objective=mntp"], "simcse": ["study=llm2vec", "objective=simcse", "init=mntp"]},
)
AT_SCALE = (
    ["experiment=paper/mistral_7b"],
    {name: [f"experiment=llm2vec/{name}", *OF_MISTRAL] for name in ("mntp", "simcse")},
)


@pytest.fixture(scope="module")
def stages(compose_cell, headed_model, lines, pairs, tmp_path_factory):
    """The three runs of LLM2Vec, two steps each, as runs/<study>/<cell>/seed0: {"mntp": folder, ...}."""
    runs = tmp_path_factory.mktemp("runs")
    folders = {name: runs / f"s+{name}" / "mean-bi" / "seed0" for name in ("mntp", "simcse", "supervised")}
    short = ["trainer.max_steps=2", "objective.lr=2e-2"]

    def config(objective, *before):
        words = quick_stage(objective, headed_model, lines)
        if objective == "infonce":
            words += ["data=jsonl", f"data.path='{pairs}'", "data.validation=4"]
            words.remove("data=text")
        named = ",".join(f"'{folders[b]}'" for b in before)
        held = [f"init.merge=[{named}]"] if before else []
        return compose_cell("mean", "bi", *words, *short, *held)

    train_run(config("mntp"), folders["mntp"])
    train_run(config("simcse", "mntp"), folders["simcse"])
    train_run(config("infonce", "mntp", "simcse"), folders["supervised"])
    return folders


def by_peft(model, folders):
    """The float32 base with each adapter merged by PEFT, one after another."""
    backbone = load_backbone(model, torch.float32)
    for folder in folders:
        backbone = PeftModel.from_pretrained(backbone, str(folder / "adapter")).merge_and_unload()
    return backbone.state_dict()


@pytest.fixture
def model(stages):
    return read_manifest(stages["mntp"])["config"]["model"]


@pytest.mark.slow
def test_merged_weights_are_those_of_peft(stages, model):
    both = [stages["mntp"], stages["simcse"]]
    backbone = load_backbone(model, torch.float32)
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    merge_stages(backbone, read_stages([str(f) for f in both]))
    wanted, merged = by_peft(model, both), backbone.state_dict()
    assert max(float((wanted[k] - merged[k]).abs().max()) for k in wanted) < 1e-6
    moved = [k for k in merged if not torch.equal(before[k], merged[k])]
    assert len(moved) == 3 * 7, "the seven projections of three layers, and nothing else"


@pytest.mark.slow
def test_a_bf16_base_is_rounded_once(stages, model):
    both = read_stages([str(stages["mntp"]), str(stages["simcse"])])
    backbone = load_backbone(model, torch.bfloat16)
    exact = {k: v.double() for k, v in backbone.state_dict().items()}
    merge_stages(backbone, both)
    for stage in both:
        tensors = load_file(stage.folder / ADAPTER)
        for key in [k for k in tensors if "lora_A" in k]:
            a, b = tensors[key].double(), tensors[key.replace("lora_A", "lora_B")].double()
            exact[key.removeprefix("base_model.model.").replace("lora_A.weight", "weight")] += 32 / 16 * b @ a
    errors = {k: (backbone.state_dict()[k].double() - exact[k]).abs() for k in exact}
    for k, error in errors.items():
        assert bool((error <= exact[k].abs() * 2**-8 * 1.001 + 1e-9).all()), "half of the last of eight bits"


@pytest.mark.slow
def test_a_run_carries_its_stages_and_is_loaded_on_top_of_them(stages, model, lines, tmp_path):
    manifest = read_manifest(stages["supervised"])
    assert [s["objective"] for s in manifest["merged"]] == ["mntp", "simcse"]
    assert [s["run"] for s in manifest["merged"]] == ["s+mntp/mean-bi/seed0", "s+simcse/mean-bi/seed0"]
    read = {name: read_manifest(folder)["data"]["sha256"] for name, folder in stages.items()}
    in_order = list(dict.fromkeys([read["mntp"], read["simcse"], read["supervised"]]))
    assert (texts_read(manifest), texts_read(manifest, trained=False)) == (in_order, in_order[:-1])
    known = OverlapCount([place(read["mntp"], manifest["config"]["cache_dir"])]).known
    assert set(map(key_of, lines.read_text().splitlines())) <= known
    assert manifest["base_weights_sha256"] == read_manifest(stages["mntp"])["base_weights_sha256"]
    loaded = load_run(stages["supervised"], manifest["config"])
    wanted, mine = by_peft(model, stages.values()), loaded.encoder.backbone.state_dict()
    assert max(float((wanted[k] - mine[k]).abs().max()) for k in wanted) < 1e-6
    start = untrained(manifest["config"])
    wanted, mine = by_peft(model, list(stages.values())[:2]), start.encoder.backbone.state_dict()
    assert max(float((wanted[k] - mine[k]).abs().max()) for k in wanted) < 1e-6
    assert start.fingerprint != untrained({**manifest["config"], "init": {"merge": None}}).fingerprint
    moved = tmp_path / "elsewhere"
    shutil.copytree(stages["mntp"].parents[2], moved)
    gone = {**manifest["config"], "init": {"merge": ["runs/not/there/any", "runs/not/there/more"]}}
    again = load_run(moved / "s+supervised" / "mean-bi" / "seed0", gone)
    assert again.fingerprint == loaded.fingerprint, "stages beside the run are found where the paths lead nowhere"
    before = loaded_from(gone, moved / "s+supervised" / "mean-bi" / "seed0" / "start")
    assert before.fingerprint == start.fingerprint, "and those of its start"


@pytest.mark.slow
def test_what_is_no_stage_is_refused(stages, tmp_path, compose_cell, small_model):
    mntp, simcse = str(stages["mntp"]), str(stages["simcse"])
    with pytest.raises(UserError, match=r"simcse.*was trained on top of s\+mntp.*not of the base alone"):
        read_stages([simcse])
    with pytest.raises(UserError, match=r"was trained on top of the base alone, not of s\+mntp"):
        read_stages([mntp, mntp])
    with pytest.raises(UserError, match="there is no run folder"):
        read_stages([str(tmp_path / "none")])
    assert read_stages(mntp) == read_stages([mntp])
    with pytest.raises(UserError, match="another base model"):
        cfg = compose_cell("mean", "bi", f'init.merge=["{mntp}"]')
        build_encoder({**cfg, "model": {**cfg["model"], "path": str(small_model)}}, PRECISIONS["fp32"], CPU)
    half = tmp_path / "s" / "mean-bi" / "seed0"
    shutil.copytree(mntp, half)
    held = {k: v for k, v in read_manifest(half).items() if k not in ("manifest_sha256", "manifest_version")}
    write_manifest(half, {**held, "status": "running"})
    with pytest.raises(UserError, match="is not finished"):
        read_stages([str(half)])
    write_manifest(half, held)
    shutil.rmtree(half / "adapter")
    with pytest.raises(UserError, match="has no adapter"):
        read_stages([str(half)])


@pytest.mark.slow
def test_a_stage_that_was_trained_again_is_noticed(stages, tmp_path):
    shutil.copytree(stages["mntp"].parents[2], tmp_path / "runs")
    mine = {name: tmp_path / "runs" / f"s+{name}" / "mean-bi" / "seed0" for name in stages}
    tensors = load_file(mine["mntp"] / ADAPTER)
    write_manifest(mine["mntp"], {**read_manifest(mine["mntp"]), "files": {}})  # training would change them
    save_file({k: v + 1e-3 for k, v in tensors.items()}, mine["mntp"] / ADAPTER)
    with pytest.raises(UserError, match=r"was trained on another s\+mntp|was trained on top of s\+mntp"):
        recorded_stages(mine["supervised"], [str(mine["mntp"]), str(mine["simcse"])])


@pytest.mark.slow
@pytest.mark.parametrize(("words", "commands"), [EMBEDDED, AT_SCALE], ids=["bundled", "at scale"])
def test_groups_of_stages_find_the_runs_of_their_commands(words, commands, stages, tmp_path):
    """What init=... reads is what the stages' commands write: sweeps on the bundled base, experiments elsewhere."""
    here = [f"runs_dir={tmp_path}", "attn=bi", "seed=0", "pooler=mean"]
    written = {}
    for name, command in commands.items():
        at = [*here, *command]
        written[name] = run_folder(plain(composed("train", at)), at)
        shutil.copytree(stages[name], written[name])
    for name, found in (("mntp", ["mntp"]), ("mntp_simcse", ["mntp", "simcse"])):
        cfg = plain(composed("train", [*here, *words, f"init={name}"]))
        assert [stage.folder for stage in read_stages(cfg["init"]["merge"])] == [written[key] for key in found]
