"""Fused LoRA is PEFT's LoRA: against PEFT itself without dropout, against float64 matrices with it, and its masks."""

from copy import deepcopy
from functools import partial

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

from encoders import fused_lora
from encoders.fused_lora import draw_kept, fuse_lora


class Block(nn.Module):
    """Linear layers as a decoder layer has them."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(12, 12), nn.Linear(12, 6), nn.Linear(12, 6)
        self.gate_proj, self.up_proj = nn.Linear(12, 20, bias=False), nn.Linear(12, 20, bias=False)
        self.down_proj = nn.Linear(20, 12, bias=False)

    def forward(self, x):
        seen = torch.cat([self.q_proj(x), self.k_proj(x) * self.v_proj(x)], dim=-1)[..., :12]
        return self.down_proj(torch.relu(self.gate_proj(seen)) * self.up_proj(seen))


def adapted(dropout=0.0, dtype=torch.float32, **lora):
    """A block with LoRA moved off zero, and the same with fused layers."""
    torch.manual_seed(0)
    targets = ["q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "down_proj"]
    block = Block().to(dtype).requires_grad_(False)
    plain = get_peft_model(nn.Sequential(block), LoraConfig(r=4, target_modules=targets, lora_dropout=dropout, **lora))
    for name, p in plain.named_parameters():
        if "lora_" in name:
            p.data = torch.randn(p.shape) * 0.3
    fused = deepcopy(plain)
    fuse_lora(fused)
    return plain.train(), fused.train()


def gradients(model, x, dtype=None):
    """Output, gradient of the input, gradients of the parameters, for a fixed weighting of the output."""
    x = x.clone().requires_grad_()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        out = model(x)
    (out.float() * torch.arange(out.numel()).view(out.shape).sin()).sum().backward()
    return [out.detach(), x.grad, *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_equals_peft(dtype):
    plain, fused = adapted()
    x = torch.randn(3, 5, 12)
    for one, other in zip(gradients(plain, x, dtype), gradients(fused, x, dtype), strict=True):
        assert one.dtype == other.dtype
        bound = 2e-6 if dtype is None else 2e-2  # bf16 keeps eight bits, and PEFT rounds once more for each term
        assert float((one - other).abs().max()) <= bound * float(one.abs().max())


def test_equals_float64_matrices_with_dropout(monkeypatch):
    _, fused = adapted(dropout=0.4)
    layers = [fused.base_model.model[0].get_submodule(n) for n in ("q_proj", "k_proj", "v_proj")]
    masks = []
    drawn = fused_lora.draw_kept
    monkeypatch.setattr(fused_lora, "draw_kept", lambda *a: masks.append(drawn(*a)) or masks[-1])
    x = torch.randn(7, 12, requires_grad=True)
    outputs = [fused_lora.fused_lora(x, layer) for layer in layers]
    weights = [torch.randn_like(y) for y in outputs]
    sum((y * w).sum() for y, w in zip(outputs, weights, strict=True)).backward()
    assert not torch.equal(masks[0], masks[1]), "each layer has a mask of its own, as in PEFT"

    x64 = x.detach().double().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    leaves = []
    for layer, mask, y, w in zip(layers, masks, outputs, weights, strict=True):
        a, b = (m["default"].weight.detach().double().requires_grad_() for m in (layer.lora_A, layer.lora_B))
        dropped = x64 * mask.view(7, 12).double() / 0.6
        literal = x64 @ layer.weight.double().T + layer.bias.double() + 2.0 * dropped @ a.T @ b.T
        assert torch.allclose(y.double(), literal, atol=1e-5)
        total = total + (literal * w.double()).sum()
        leaves += [(layer.lora_A["default"].weight, a), (layer.lora_B["default"].weight, b)]
    total.backward()
    assert torch.allclose(x.grad.double(), x64.grad, atol=1e-5)
    for own, literal in leaves:
        assert torch.allclose(own.grad.double(), literal.grad, atol=1e-4)


def test_a_frozen_input_needs_no_gradient():
    plain, fused = adapted()
    x = torch.randn(2, 12)
    for model in (plain, fused):
        model(x).sum().backward()
    for one, other in zip(plain.parameters(), fused.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        assert one.grad is None or torch.allclose(one.grad, other.grad, atol=1e-5)


def test_merged_or_disabled_adapters_are_peft_s_own():
    plain, fused = adapted()
    x = torch.randn(2, 12)
    with plain.disable_adapter(), fused.disable_adapter():
        assert torch.equal(plain(x), fused(x))
    fused.merge_adapter()
    assert torch.allclose(plain(x), fused(x), atol=1e-5)
    assert torch.allclose(plain(x), fused.merge_and_unload()(x), atol=1e-5)


def test_gradient_checkpointing_replays_the_masks():
    _, fused = adapted(dropout=0.5)
    x = torch.randn(3, 12)
    torch.manual_seed(5)
    usual = gradients(fused, x)
    fused.zero_grad()
    torch.manual_seed(5)
    again = gradients(_Checkpointed(fused), x)
    for one, other in zip(usual, again, strict=True):
        assert torch.equal(one, other)


class _Checkpointed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)


def test_what_is_not_plain_lora_is_left_alone():
    model = get_peft_model(nn.Sequential(Block()), LoraConfig(r=2, target_modules=["q_proj"], use_dora=True))
    assert fuse_lora(model) == 0
    assert not any(isinstance(m.__dict__.get("forward"), partial) for m in model.modules())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_share_and_independence(p, dtype):
    torch.manual_seed(0)
    kept = draw_kept(torch.ones(1000, 1000, dtype=dtype), p)
    assert kept.dtype is dtype
    assert sorted(kept.unique().tolist()) == [0, 1]
    kept = kept.double()
    assert float(kept.mean()) == pytest.approx(1 - p, abs=4 * (p * (1 - p) / 1e6) ** 0.5)
    for apart in (1, 4, 1000):
        flat = kept.flatten()
        assert float((flat[apart:] * flat[:-apart]).mean()) == pytest.approx((1 - p) ** 2, abs=0.003)
