"""What inference computes in fewer passes is the same bit by bit, and what would not be is left alone."""

import shutil
from copy import deepcopy

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from encoders import loading
from encoders.fast.passes import spare_norms
from encoders.loading import untrained
from tests.families import FAMILIES, SIZES

TEXTS = ["the sum of two arrays", "type", "a new array of the same shape"]


class Norm(nn.Module):
    """RMS norm as transformers writes it; `offset` 1 is Gemma's, whose weights start from zero."""

    def __init__(self, offset):
        super().__init__()
        self.weight, self.variance_epsilon, self.offset = nn.Parameter(torch.rand(8) + 0.5), 1e-6, offset

    def forward(self, x):
        return (self.offset + self.weight) * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


@pytest.mark.parametrize("autocast", ["null", "fp32"])
@pytest.mark.parametrize("precision", ["fp32", "mixed", "bf16"])
def test_the_vectors_are_the_same(compose_cell, monkeypatch, precision, autocast):
    cfg = compose_cell("mean", "bi", f"precision={precision}", f"evaluation.autocast={autocast}")
    spared = untrained(cfg).encode(TEXTS)
    assert_usual(spared, cfg, monkeypatch)


def assert_usual(spared, cfg, monkeypatch):
    monkeypatch.setattr(loading, "spare_norms", lambda *_: None)
    assert torch.equal(torch.from_numpy(spared), torch.from_numpy(untrained(cfg).encode(TEXTS)))


@pytest.fixture(scope="module", params=["qwen3", "olmoe", "qwen3_moe", "olmo2"])
def normed(request, small_model, tmp_path_factory):
    """A decoder that norms queries and keys, by weights that are not one."""
    folder = tmp_path_factory.mktemp(request.param)
    for file in small_model.glob("*token*"):
        shutil.copy(file, folder)
    shape = {**SIZES, **FAMILIES[request.param], "vocab_size": 320, "max_position_embeddings": 128}
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(request.param, **shape))
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.data.uniform_(0.5, 1.5)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("precision", "autocast"), [("fp32", "null"), ("mixed", "null"), ("fp32", "bf16")])
def test_the_vectors_are_the_same_where_products_are_normed(compose_cell, monkeypatch, normed, precision, autocast):
    """Under autocast such a norm reads bf16, and where it rounds is its family's own."""
    words = [f"precision={precision}", f"evaluation.autocast={autocast}", f"model.path={normed}"]
    cfg = compose_cell("mean", "bi", *words)
    encoder = untrained(cfg)
    assert_usual(encoder.encode(TEXTS), cfg, monkeypatch)
    quick = [m for m in encoder.encoder.backbone.modules() if "forward" in vars(m) and hasattr(m, "variance_epsilon")]
    assert len(quick) == 13, "norms of float32 are spared their passes all the same"


@torch.no_grad()
def test_a_norm_is_spared():
    module, x = Norm(0), torch.randn(3, 8)
    usual = module(x)
    assert spare_norms(nn.Sequential(module)) == 1
    assert torch.equal(module(x), usual)


@torch.no_grad()
@pytest.mark.parametrize("module", [Norm(1), Norm(0).bfloat16(), nn.LayerNorm(8)])
def test_these_stay_as_they_are(module):
    assert spare_norms(nn.Sequential(module)) == 0
    assert "forward" not in vars(module)


def test_a_copy_has_weights_of_its_own():
    norm, x = Norm(0), torch.randn(3, 8)
    spare_norms(nn.Sequential(norm))
    copy, before = deepcopy(norm), norm(x)
    copy.weight.data.zero_()
    assert torch.equal(norm(x), before)
    assert not copy(x).any()


def test_gradients_of_a_norm():
    """Against the formula in float64."""
    norm, x = Norm(0), torch.randn(5, 8)
    exact, double = Norm(0).double(), x.double().requires_grad_()
    exact.load_state_dict({"weight": norm.weight.detach().double()})
    exact(double).square().sum().backward()
    assert spare_norms(nn.Sequential(norm)) == 1
    x.requires_grad_()
    norm(x).square().sum().backward()
    assert torch.allclose(x.grad.double(), double.grad, rtol=1e-5, atol=1e-6)
    assert torch.allclose(norm.weight.grad.double(), exact.weight.grad, rtol=1e-5, atol=1e-6)
