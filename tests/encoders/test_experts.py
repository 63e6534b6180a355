"""Experts under autocast: their products run in its format; and they are counted without memory in every format."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from encoders.backbone import load_backbone
from tests.encoders.test_checkpoint import model_of
from tests.encoders.test_routers import FAMILIES
from tests.families import SIZES

CPU = torch.device("cpu")


@pytest.mark.parametrize("family", FAMILIES)
def test_products_of_experts_are_those_of_linear_layers_under_autocast(tmp_path, family):
    """transformers' loop over experts calls F.linear, which autocast rounds: output and gradients are the loop's."""
    torch.manual_seed(0)
    settings = {**SIZES, **FAMILIES[family]}
    AutoModel.from_config(AutoConfig.for_model(family, **settings)).save_pretrained(tmp_path)
    backbone = load_backbone(model_of(tmp_path), torch.float32)
    experts = next(m for m in backbone.modules() if hasattr(m, "gate_up_proj"))
    chosen, weights = torch.randn(40, 4).topk(2).indices, torch.rand(40, 2)
    hidden = torch.randn(40, 32)
    ours = backbone.config._experts_implementation
    results = []
    for way, autocast in ((ours, True), ("eager", True), ("eager", False)):
        backbone.config._experts_implementation = way
        x, w = hidden.clone().requires_grad_(), weights.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = experts(x, chosen, w)
        assert out.dtype is torch.float32
        out.square().sum().backward()
        results.append((out.detach(), x.grad, w.grad))
    for cast, loop, exact in zip(*results, strict=True):
        assert (cast - loop).norm() < 0.3 * (loop - exact).norm()
        assert (loop - exact).norm() > 1e-3 * exact.norm()
