"""Layers by numba's kernels are transformers' and PEFT's layers: to rounding of bf16 where they round elsewhere."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import AutoConfig, AutoModel

from encoders import jit_layer
from encoders.adapter import add_lora
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import arranged, parts, set_attention
from encoders.fast import fused_lora
from encoders.fast.passes import draw_kept, kernels
from encoders.jit_layer import HALF, elementwise, use_kernels
from encoders.tokens import Batch
from poolers.shared.base import EOS, PAD, TEXT
from tests.families import FAMILIES, SIZES

pytest.importorskip("numba")
LENGTHS = (7, 40, 1, 22, 39)
LORA = {"r": 4, "alpha": 8, "targets": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}
FAST = sorted(jit_layer.FAMILIES)


@pytest.fixture(autouse=True)
def one_thread():
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual)


def bits(x):
    return x.view(torch.uint16).numpy()


def random(*shape, dtype=HALF, scale=2.0):
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))) * scale).to(dtype)


def ulps(one, exact):
    """Greatest distance of bf16 numbers from `exact` (float64), in steps of bf16 there."""
    step = 2.0 ** (torch.frexp(exact)[1].double().clamp(min=-126) - 8)
    return float(((one.double() - exact).abs() / step).max())


def test_masks_sums_and_gates_are_torch_s_bit_by_bit():
    g, u = random(37, 45), random(37, 45, scale=9.0)
    g[0, :4] = torch.tensor([float("nan"), float("inf"), -0.0, 80.0])
    kept, h, out = draw_kept(g, 0.3), random(37, 45, dtype=torch.float32), torch.empty_like(g)
    kernels().mask(bits(g).reshape(-1), kept.view(-1).numpy(), bits(out).reshape(-1))
    assert torch.equal(out.view(torch.int16), torch.where(kept.bool(), g, 0).view(torch.int16))
    kernels().gate(bits(g), bits(u), bits(out))
    usual = F.silu(g) * u
    assert torch.equal(out.isnan(), usual.isnan())
    assert ulps(out[1:], usual[1:].double()) <= 2  # silu may be rounded to the other neighbour, and u multiplies that
    assert (out[1:] == usual[1:]).float().mean() > 0.999
    total = torch.empty_like(h)
    kernels().add(h.numpy(), bits(u), total.numpy())
    assert torch.equal(total, h + u)


def test_numbers_are_rounded_as_torch_rounds():
    """By a rotation of nought degrees. Halfway between two, on either side of it, and what is no number."""
    x = random(1, 1, 64)
    for scale in (1.00390625, 1.01171875, 3.0e38, 1e-39, float("nan"), float("inf")):
        out, one, nought = torch.empty_like(x), np.ones((1, 64), np.float32), np.zeros((1, 64), np.float32)
        kernels().rotate(bits(x), one, nought, np.float32(1), np.float32(scale), bits(out))
        assert torch.equal(out.nan_to_num(7), (x.float() * scale).to(HALF).nan_to_num(7))


def test_norms_softmax_and_gradients_against_float64():
    h, w, g = random(9, 100, dtype=torch.float32), torch.rand(100) + 0.5, random(9, 100)
    out, inverse, of_h = torch.empty(9, 100, dtype=HALF), torch.empty(9), torch.empty_like(h)
    kernels().norm(h.numpy(), w.numpy(), np.float32(1e-6), bits(out), inverse.numpy())
    leaf = h.double().requires_grad_()
    exact = F.rms_norm(leaf, (100,), w.double(), 1e-6)
    assert ulps(out, exact.detach()) <= 0.51
    exact.backward(g.double())
    kernels().norm_backward(bits(g), np.ones((9, 100), np.float32), h.numpy(), w.numpy(), inverse.numpy(), of_h.numpy())
    assert torch.allclose(of_h.double(), leaf.grad + 1, atol=2e-6)
    scores = random(1, 2, 3, 5, 5, scale=6.0)
    bias = torch.zeros(1, 5, 5).masked_fill(~torch.ones(5, 5).tril().bool(), -torch.inf)
    exact = (scores.double() + bias.double()).softmax(-1)
    kernels().softmax(bits(scores), bias.numpy(), np.empty(5, np.float32))
    assert ulps(scores, exact) <= 0.51
    assert not scores[..., 0, 1:].any()
    a, b = (x.double().requires_grad_() for x in (random(9, 100), random(9, 100, scale=7.0)))
    (F.silu(a) * b).backward(g.double())
    of_a, of_b = torch.empty_like(g), torch.empty_like(g)
    kernels().gate_backward(bits(g), bits(a.detach().to(HALF)), bits(b.detach().to(HALF)), bits(of_a), bits(of_b))
    for one, leaf in ((of_a, a), (of_b, b)):
        assert float((one.double() - leaf.grad).abs().max() / leaf.grad.abs().max()) < 4e-3


def decoder(family, attn="causal", kernel="unpadded"):
    torch.manual_seed(0)
    settings = {**SIZES, **FAMILIES[family], "sliding_window": None, "use_sliding_window": False}
    model = AutoModel.from_config(AutoConfig.for_model(family, **settings), attn_implementation=kernel)
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.data.uniform_(0.5, 1.5)
    from cli.compose import composed, plain

    set_attention(model, pattern_of(plain(composed("train", [f"attn={attn}", "pooler=mean"]))["attn"]))
    return model.requires_grad_(False)


def adapted(model, dropout, fused):
    add_lora(model, {**LORA, "dropout": dropout}, seed=1, fused=fused)
    draw = torch.Generator().manual_seed(2)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data = torch.randn(weight.shape, generator=draw) * 0.1
    return model.train()


def batch(lengths=LENGTHS, order=None):
    draw = torch.Generator().manual_seed(5)
    texts = [torch.randint(3, 160, (n,), generator=draw) for n in lengths]
    texts = [texts[i] for i in (order or range(len(texts)))]
    ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    counts = torch.tensor([len(t) for t in texts])[:, None]
    places = torch.arange(ids.shape[1]).expand_as(ids)
    roles = torch.where(places < counts - 1, TEXT, torch.where(places == counts - 1, EOS, PAD))
    return Batch(ids, roles, places)


def outcome(model, inputs, compute=HALF, seed=3):
    """States [N, D] of a batch's tokens, and all gradients, in float64."""
    torch.manual_seed(seed)
    rows = arranged(model, inputs)
    with torch.autocast("cpu", HALF, enabled=compute is HALF):
        states = model(**rows.inputs).last_hidden_state
    (states.double() * torch.arange(states.numel()).view(states.shape).sin()).sum().backward()
    gradients = [p.grad.double().flatten() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    return states.detach().double().flatten(), torch.cat(gradients)


def apart(one, exact):
    return float((one - exact).norm() / exact.norm())


@pytest.mark.parametrize("attn", ["causal", "bi"])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("family", FAST)
def test_equals_transformers_and_peft(family, dropout, attn):
    """As near to float64 as today's own layers under the same autocast, give or take a third."""
    own = adapted(decoder(family, attn), dropout, fused=True)
    plain = adapted(decoder(family, attn), dropout, fused=bool(dropout))  # PEFT would draw other masks
    exact = outcome(deepcopy(plain).double(), batch(), compute=torch.float64)
    usual = outcome(plain, batch())
    assert use_kernels(own, HALF) == 3
    assert elementwise(own).startswith("numba ")
    for one, other, true in zip(outcome(own, batch()), usual, exact, strict=True):
        assert 0 < apart(one, true) < max(1.33 * apart(other, true), 0.01)
        assert apart(one, other) < 3 * apart(other, true)


def test_texts_do_not_touch_one_another():
    model = adapted(decoder("llama"), 0.0, fused=True)
    use_kernels(model, HALF)
    turned = [4, 2, 0, 1, 3]
    states = outcome(model, batch())[0].view(sum(LENGTHS), -1).split(LENGTHS)
    again = outcome(model, batch(order=turned))[0].view(sum(LENGTHS), -1).split([LENGTHS[i] for i in turned])
    for i, text in zip(turned, again, strict=True):
        assert apart(text, states[i]) < 0.01
    alone = outcome(model, batch(LENGTHS[:1]))[0].view(LENGTHS[0], -1)
    assert apart(alone, states[0]) < 0.01


def test_the_same_masks_and_bits_again():
    """A second run, gradient checkpointing and the path without kernels draw the same masks."""
    model = adapted(decoder("qwen2"), 0.3, fused=True)
    usual = outcome(model, batch())
    use_kernels(model, HALF)
    first = outcome(model, batch())
    assert 0 < apart(first[1], usual[1]) < 0.1, "other masks would be another gradient altogether"
    assert all(torch.equal(a, b) for a, b in zip(first, outcome(model, batch()), strict=True))
    model.gradient_checkpointing_enable({"use_reentrant": False})
    assert all(torch.equal(a, b) for a, b in zip(first, outcome(model, batch()), strict=True))


@pytest.mark.parametrize("family", ["qwen3", "olmo2", "olmoe"])
def test_other_families_stay_as_they_are(family):
    model = decoder(family)
    assert use_kernels(model, HALF) == 0
    assert elementwise(model) == "torch"


def test_other_kernels_and_formats_stay_as_they_are(monkeypatch):
    assert use_kernels(decoder("llama", kernel="eager"), HALF) == 0
    model = decoder("llama")
    assert use_kernels(model, torch.float32) == 0
    torch.set_num_threads(2)  # torch shares its passes out
    assert use_kernels(model, HALF) == 0
    torch.set_num_threads(1)
    monkeypatch.setattr(jit_layer, "kernels", lambda: None)  # as without numba
    assert use_kernels(model, HALF) == 0


def test_calls_that_do_not_fit_are_transformers_own(monkeypatch):
    """Float32 products, weights of norms that train, dropout of attention."""
    model, plain = decoder("llama"), decoder("llama")
    use_kernels(model, HALF)
    rows = arranged(model, batch()).inputs
    assert torch.equal(model(**rows)[0], plain(**rows)[0])
    with torch.autocast("cpu", HALF):
        assert not torch.equal(model(**rows)[0], plain(**rows)[0])
        for each in (model, plain):
            each.requires_grad_(True)
        assert torch.equal(model(**rows)[0], plain(**rows)[0])
        for each in (model.requires_grad_(False).train(), plain.requires_grad_(False).train()):
            for layer in parts(each)[0]:
                layer.self_attn.attention_dropout = 0.5
        first, second = (torch.manual_seed(1) and each(**rows)[0] for each in (model, plain))
        assert torch.equal(first, second)


def test_masked_products_without_kernels_are_the_same_bits(monkeypatch):
    model = adapted(decoder("llama"), 0.2, fused=True)
    compiled = outcome(model, batch())
    monkeypatch.setattr(fused_lora, "kernels", lambda: None)
    assert all(torch.equal(a, b) for a, b in zip(compiled, outcome(model, batch()), strict=True))
