"""The base in four bits: refused without bitsandbytes; with it LoRA trains on it and is scored as it was trained."""

from importlib.util import find_spec

import pytest
import torch

from cli.errors import UserError
from encoders.backbone import load_backbone
from encoders.loading import build_encoder, load_run
from encoders.precision import PRECISIONS
from records.manifest import read_manifest
from tests.triples import quick_run, write_triples
from training.checks import check_sizes

CPU = torch.device("cpu")
INSTALLED = find_spec("bitsandbytes")


@pytest.fixture
def quantised(compose_cell, tmp_path):
    """A cell of two steps on the small model in four bits."""
    return compose_cell("mean", "bi", "model.quantise=nf4", *quick_run(write_triples(tmp_path / "pairs.jsonl")))


@pytest.mark.skipif(bool(INSTALLED), reason="bitsandbytes is installed")
def test_without_the_package_it_is_one_line(quantised):
    check_sizes(quantised)
    with pytest.raises(UserError, match=r"nf4 needs the package bitsandbytes. Install it: pip install bitsandbytes"):
        load_backbone(quantised["model"], torch.float32)


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="needs bitsandbytes: pip install '.[qlora]'")
def test_what_was_trained_is_what_is_scored(quantised, tmp_path):
    from training.run import train_run

    train_run(quantised, tmp_path)
    manifest = read_manifest(tmp_path)
    whole = build_encoder({**quantised, "model": {**quantised["model"], "quantise": None}}, PRECISIONS["fp32"], CPU)
    assert manifest["parameters"]["base"] == sum(p.numel() for p in whole.backbone.parameters())
    assert manifest["loss"] > 0
    encoder = load_run(tmp_path, quantised)
    names = {type(module).__name__ for module in encoder.encoder.backbone.modules()}
    assert "Linear4bit" in names
    one = encoder.encode(["returned sum as array"])
    many = encoder.encode(["a new sum", "returned sum as array", "a much longer text about the index of a matrix"])
    assert abs(one[0] - many[1]).max() < 1e-5, "batch mates"
    plain = load_run(tmp_path, {**quantised, "model": {**quantised["model"], "quantise": None}})
    assert plain.fingerprint != encoder.fingerprint
    assert (plain.encode(["a new sum"]) * encoder.encode(["a new sum"])).sum() > 0.8
