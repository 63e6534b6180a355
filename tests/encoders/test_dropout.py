"""The quick dropout is dropout: its share, its scale, its gradient, its seed."""

import pytest
import torch

from encoders.adapter import add_lora
from encoders.fast import fused_lora
from encoders.fast.passes import QuickDropout
from encoders.loading import build_encoder
from encoders.precision import PRECISIONS


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_share_and_scale(p):
    torch.manual_seed(0)
    out = QuickDropout(p)(torch.ones(1000, 1000))
    assert out.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)])
    assert float((out == 0).float().mean()) == pytest.approx(p, abs=4 * (p * (1 - p) / 1e6) ** 0.5)
    assert float((out[:, 1:] * out[:, :-1]).mean()) == pytest.approx(1, abs=0.01), "neighbours are independent"


def test_seed_decides_and_evaluation_passes_through():
    layer, x = QuickDropout(0.3), torch.randn(64, 8)
    torch.manual_seed(1)
    one, other = layer(x), layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), one)
    assert not torch.equal(one, other)
    assert layer.eval()(x) is x


def test_gradient_is_the_mask():
    x = torch.randn(64, 8, requires_grad=True)
    out = QuickDropout(0.3)(x)
    out.sum().backward()
    assert torch.allclose(x.grad * x, out)


def kept_bytes(run):
    """Bytes of all storages that the backward pass of `run` keeps."""
    held = {}
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: held.setdefault(t.untyped_storage().data_ptr(), t) is None or t, lambda t: t
    ):
        out = run()
    return sum(t.untyped_storage().nbytes() for t in held.values()), out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_byte_is_kept_of_each_entry_of_a_mask(dtype):
    x = torch.randn(64, 128, dtype=dtype, requires_grad=True)
    held, _ = kept_bytes(lambda: QuickDropout(0.3)(x))
    assert held == x.numel()


@pytest.mark.parametrize("autocast", [False, True])
def test_lora_keeps_bytes_and_the_numbers_of_masks_in_its_own_format(monkeypatch, compose_cell, autocast):
    """Bit by bit: bytes as masks, and the same masks written out in the format of the products."""
    cfg = compose_cell("eos", "bi")
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    attention = encoder.backbone.layers[0].self_attn.train()
    layers = [attention.q_proj, attention.k_proj, attention.v_proj]
    for layer in layers:
        torch.nn.init.normal_(layer.lora_B["default"].weight)
    x = torch.randn(64, 32, requires_grad=True)
    drawn, product = fused_lora.draw_kept, torch.bfloat16 if autocast else torch.float32

    def run():
        torch.manual_seed(3)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return fused_lora.fused_lora(x, layers)

    def gradients(outputs):
        parameters = [p for layer in layers for p in (layer.lora_A["default"].weight, layer.lora_B["default"].weight)]
        return torch.autograd.grad(sum(y.float().square().sum() for y in outputs), [x, *parameters])

    held, outputs = kept_bytes(run)
    monkeypatch.setattr(fused_lora, "draw_kept", lambda *a: drawn(*a).to(product))
    usual, wide = kept_bytes(run)
    assert usual - held == 3 * x.numel() * (product.itemsize - 1)
    for one, other in zip((*outputs, *gradients(outputs)), (*wide, *gradients(wide)), strict=True):
        assert torch.equal(one, other)
