"""Runs of adapter=mixse: experts from finished runs, the router trained alone or with them, saved, loaded, resumed."""

import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from cli.errors import UserError
from encoders.adapter import adapter_files, load_adapter
from encoders.export.exported import load_exported
from encoders.loading import build_encoder, load_run
from encoders.mixse import mixture_of
from encoders.precision import PRECISIONS
from evaluation.candidates import candidates, configured
from records.earlier_runs import ADAPTER, read_starts
from records.manifest import read_manifest
from tests.contract.conftest import TEXTS, apart, embed
from tests.triples import quick_run
from training.checks import check_sizes, refuse_changed
from training.cost import empty_encoder, parameters
from training.objectives.infonce import InfoNCE
from training.run import train_run

ROUTER = "adapter/router.safetensors"


@pytest.fixture(scope="module")
def cell(compose_cell, pairs):
    """Compose a cell that trains four quick steps."""
    words = [*quick_run(pairs, 4, checkpoint=2), "objective.lr=2e-2"]
    return lambda *more: compose_cell("mean", "bi", *words, *more)


@pytest.fixture(scope="module")
def experts(cell, tmp_path_factory):
    """The folders of two runs of one LoRA each."""
    runs = tmp_path_factory.mktemp("experts")
    folders = [runs / "s" / name / "seed0" for name in ("one", "two")]
    for folder, rate in zip(folders, ("2e-2", "5e-3"), strict=True):
        train_run(cell(f"objective.lr={rate}"), folder)
    return folders


@pytest.fixture(scope="module")
def mixed(cell, experts):
    """Compose a mixture of these two."""
    named = ",".join(f"'{folder}'" for folder in experts)
    return lambda *more: cell("adapter=mixse", f"adapter.experts=[{named}]", *more)


@pytest.fixture(scope="module")
def run(mixed, tmp_path_factory):
    """A run whose router alone was trained."""
    folder = tmp_path_factory.mktemp("run") / "mixed"
    train_run(mixed(), folder)
    return folder


def tensors(folder, cfg):
    return {(f, k): v for f in adapter_files(cfg) for k, v in load_file(folder / f).items()}


@pytest.mark.slow
def test_the_router_alone_is_trained_and_the_manifest_names_the_experts(run, mixed, experts):
    cfg, manifest = mixed(), read_manifest(run)
    saved = tensors(run, cfg)
    for number, folder in enumerate(experts):
        expert = load_file(folder / ADAPTER)
        for name, tensor in expert.items():
            assert torch.equal(tensor, saved[f"adapter/expert{number}/adapter_model.safetensors", name])
    router = saved[ROUTER, "router"]
    assert manifest["parameters"]["adapter"] == router.numel() == 2 * 32
    of_one = sum(t.numel() for t in load_file(experts[0] / ADAPTER).values())
    assert manifest["parameters"]["experts"] == 2 * of_one
    assert manifest["parameters"]["active"] == of_one + router.numel()
    wanted = [e.adapter_sha256 for e in read_starts(cfg, "adapter.experts")]
    assert [e["adapter_sha256"] for e in manifest["experts"]] == wanted
    plain = read_manifest(experts[0])
    assert manifest["parameters"]["base"] == plain["parameters"]["base"]
    assert "active" not in plain["parameters"]
    assert parameters(empty_encoder(cfg)) == manifest["parameters"]


@pytest.mark.slow
def test_what_evaluate_scores_as_untrained_are_the_experts_under_the_first_router(run, mixed, tmp_path):
    train_run(mixed("trainer.max_steps=0"), tmp_path / "start")
    (start,) = candidates(configured([f"run={run}", "untrained=only"]))
    assert start.name.endswith("-untrained")
    wanted = load_run(tmp_path / "start", mixed()).encode(TEXTS)
    assert np.abs(start.embeddings(None).embed(TEXTS) - wanted).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("more", [["adapter.balance=0.1"], ["adapter.experts=2", "adapter.trains=experts"]])
def test_loaded_it_is_what_was_trained_and_interrupted_it_ends_bit_equal(mixed, tmp_path, power_cut, more):
    cfg = mixed(*more)
    train_run(cfg, tmp_path / "whole")
    with power_cut(3):
        train_run(cfg, tmp_path / "broken")
    train_run(cfg, tmp_path / "broken")
    whole, broken = (tensors(tmp_path / name, cfg) for name in ("whole", "broken"))
    assert whole.keys() == broken.keys()
    assert all(torch.equal(whole[k], broken[k]) for k in whole)
    loaded = load_run(tmp_path / "whole", cfg)
    assert not loaded.encoder.training  # LoRA beside the weights, so dropout would act
    assert torch.equal(mixture_of(loaded.encoder.backbone).router, whole[ROUTER, "router"])
    other = {**cfg, "adapter": {**cfg["adapter"], "top_k": 2}}
    both = load_run(tmp_path / "whole", other)
    assert both.fingerprint != loaded.fingerprint
    assert np.abs(both.encode(TEXTS) - loaded.encode(TEXTS)).max() > 1e-4


@pytest.mark.slow
def test_constant_weights_are_merged_and_equal_the_experts_apart(mixed, tmp_path):
    """Nothing is trained: the run is saved without a step."""
    cfg = mixed("adapter.router=uniform", "adapter.top_k=null", "trainer.max_steps=0")
    check_sizes(cfg)
    train_run(cfg, tmp_path)
    merged = load_run(tmp_path, cfg)
    assert not any(hasattr(m, "lora_A") for m in merged.encoder.modules())
    assert mixture_of(merged.encoder.backbone) is None
    setup = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    load_adapter(setup.backbone, cfg, tmp_path, merged=False)
    assert mixture_of(setup.backbone).router is None
    setup.pooler.load_state_dict(load_file(tmp_path / "head.safetensors"))
    assert apart(embed(setup.eval(), merged.tokenizer, TEXTS), torch.from_numpy(merged.encode(TEXTS))) < 2e-6


REFUSED = {
    "lora.r=8": "was trained with lora.r=16, and here lora.r=8",
    "attn=causal": "was trained with attn",
    "adapter.experts=[nowhere]": "no run folder nowhere",
}


@pytest.mark.parametrize("words", REFUSED)
def test_experts_that_do_not_fit_are_refused(mixed, words):
    with pytest.raises(UserError, match=re.escape(REFUSED[words])):
        read_starts(mixed(words), "adapter.experts")


WRONG = {
    "adapter.experts=null": "adapter.experts=None must be",
    "adapter.experts=2": "which are drawn",
    "adapter.router=uniform": "weighs all experts alike",
    "adapter.top_k=3": "adapter.top_k=3 is more than the 2 experts",
    "adapter.router=random": "train nothing",
    "adapter.balance=0.01 trainer.gradient_checkpointing=true": "cannot be recomputed",
    "init.lora=[nowhere]": "takes neither",
    "adapter.experts=1 adapter.trains=experts adapter.always=true": "more than the 0 experts",
    "backbone.frozen=true pooler=lastlayer": "takes neither",
}


@pytest.mark.parametrize("words", WRONG)
def test_keys_that_do_not_fit_are_refused(mixed, words):
    with pytest.raises(UserError, match=re.escape(WRONG[words])):
        check_sizes(mixed(*words.split()))


def test_a_router_is_not_exported(run):
    with pytest.raises(UserError, match="experts are weighed for each token"):
        load_exported(run)


def test_experts_that_have_changed_are_refused(run, mixed):
    cfg = mixed()
    swapped = {**cfg, "adapter": {**cfg["adapter"], "experts": cfg["adapter"]["experts"][::-1]}}
    refuse_changed(cfg, run, InfoNCE.read(cfg["data"], cfg["cache_dir"]))
    with pytest.raises(UserError, match=r"The runs of adapter.experts= changed since"):
        refuse_changed(swapped, run, InfoNCE.read(cfg["data"], cfg["cache_dir"]))
