"""Experts under autocast: their products run in its format; and they are counted without memory in every format."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from encoders.backbone import load_backbone
from encoders.loading import build_encoder
from encoders.lora import add_lora
from encoders.precision import PRECISIONS
from tests.encoders.test_checkpoint import model_of
from tests.encoders.test_families import batch_of
from tests.encoders.test_routers import FAMILIES
from tests.families import SIZES
from training.cost.check import facts

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


@pytest.mark.parametrize("precision", ["fp32", "mixed", "bf16"])
def test_a_mixture_is_counted_without_memory_as_it_runs(compose_cell, precision):
    """check=true: bytes that autograd keeps, against a real pass with hooks on what it saves."""
    cfg = compose_cell("moee_trained", "bi", f"precision={precision}", "token_budget=96", "max_length=48")
    counted = facts(cfg)
    encoder = build_encoder(cfg, PRECISIONS[precision], CPU)
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    ids = torch.randint(3, 300, (2, 48), generator=torch.Generator().manual_seed(0))
    own = {p.untyped_storage().data_ptr() for p in encoder.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        encoder.train()(batch_of(ids, [48, 48], 48))
    real = sum(storage.nbytes() for storage in kept.values())
    assert counted.chunk == (2, 48)
    assert 0.8 * real < counted.saved_bytes < 1.25 * real
