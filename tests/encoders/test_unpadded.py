"""Attention without padding, against literal block-diagonal masks in float64; its dropout, with the same masks."""

import math
from types import SimpleNamespace

import pytest
import torch

from encoders.attention import unpadded
from encoders.attention.pattern import earlier, whole_text
from encoders.attention.unpadded import Segments, unpadded_attention

LENGTHS = (3, 9, 1, 8, 2, 9)
HEADS, SHARED, WIDTH = 6, 2, 4


def seeing(mask_fn):
    """Stands for an attention module whose tokens see what `mask_fn` allows."""
    return SimpleNamespace(mask_fn=mask_fn)


def tensors(seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(1, h, sum(LENGTHS), WIDTH, generator=draw, requires_grad=True) for h in (HEADS, SHARED, SHARED)]


def literal(query, key, value, is_causal):
    """[1, N, H, d] in float64: one softmax a head over the whole row, under a mask that lets no text see another."""
    owner = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    sees = owner[:, None] == owner[None]
    if is_causal:
        sees &= torch.ones_like(sees).tril()
    heads = []
    for h in range(HEADS):
        q, k, v = query[0, h].double(), key[0, h * SHARED // HEADS].double(), value[0, h * SHARED // HEADS].double()
        heads.append((q @ k.T / math.sqrt(WIDTH)).masked_fill(~sees, -math.inf).softmax(-1) @ v)
    return torch.stack(heads, dim=1)[None]


@pytest.mark.parametrize("mask_fn", [earlier, whole_text])
def test_outputs_and_gradients(mask_fn):
    segments = Segments(LENGTHS, torch.device("cpu"))
    assert len(segments.groups(mask_fn)) > 1, "several groups, or the test is easier than a batch"
    own, exact = tensors(), tensors()
    out, weights = unpadded_attention(seeing(mask_fn), *own, None, WIDTH**-0.5, segments=segments)
    wanted = literal(*exact, mask_fn is earlier)
    assert weights is None
    assert (out - wanted).abs().max() < 1e-6
    weighting = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    (out * weighting).sum().backward()
    (wanted * weighting).sum().backward()
    for one, other in zip(own, exact, strict=True):
        assert (one.grad - other.grad).abs().max() < 2e-6


FEW, P = (5, 3, 5), 0.4


def dense(query, key, value, kept, is_causal):
    """[1, N, H, d] text by text, head by head. kept: (text, head) -> [n, n] zeros and ones."""
    out, start = torch.zeros(1, sum(FEW), HEADS, WIDTH, dtype=query.dtype), 0
    for text, n in enumerate(FEW):
        span = slice(start, start + n)
        for head in range(HEADS):
            q, k, v = query[0, head, span], key[0, head // 3, span], value[0, head // 3, span]
            scores = 0.5 * q @ k.T
            if is_causal:
                scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
            out[0, span, head] = (scores.softmax(dim=-1) * kept[text, head] / (1 - P)) @ v
        start += n
    return out


@pytest.mark.parametrize("mask_fn", [earlier, whole_text])
def test_dropout_of_attention_is_that_of_its_masks(monkeypatch, mask_fn):
    drawn, real = [], unpadded.draw_kept
    monkeypatch.setattr(unpadded, "draw_kept", lambda like, p: drawn.append(real(like, p)) or drawn[-1])
    torch.manual_seed(0)
    n = sum(FEW)
    inputs = [torch.randn(1, h, n, WIDTH, dtype=torch.float64, requires_grad=True) for h in (HEADS, SHARED, SHARED)]
    segments = Segments(FEW, torch.device("cpu"))
    out, _ = unpadded_attention(SimpleNamespace(mask_fn=mask_fn), *inputs, None, 0.5, segments=segments, dropout=P)
    kept = {}
    order = sorted(range(3), key=lambda i: -FEW[i])
    for group, mask in zip(segments.groups(mask_fn), drawn, strict=True):
        blocks = mask.view(SHARED, group.texts, HEADS // SHARED, group.width, group.width)
        for b in range(group.texts):
            text = order.pop(0)
            for head in range(HEADS):
                kept[text, head] = blocks[head // 3, b, head % 3, : FEW[text], : FEW[text]].double()
    wanted = dense(*inputs, kept, mask_fn is earlier)
    assert float((out - wanted).detach().abs().max()) < 1e-6, "the softmax is taken in float32"
    weight = torch.randn_like(out)
    mine, theirs = (torch.autograd.grad((x * weight).sum(), inputs) for x in (out, wanted))
    assert max(float((a - b).abs().max()) for a, b in zip(mine, theirs, strict=True)) < 1e-5
    shares = torch.cat([m.flatten() for m in drawn]).double().mean()
    assert abs(float(shares) - (1 - P)) < 0.15
