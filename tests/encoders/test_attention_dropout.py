"""Dropout of attention without padding: values and gradients against a dense expression with the same masks."""

from types import SimpleNamespace

import pytest
import torch

from encoders.attention import unpadded
from encoders.attention.pattern import earlier, whole_text
from encoders.attention.unpadded import Segments, unpadded_attention

LENGTHS = (5, 3, 5)
HEADS, SHARED, WIDTH, P = 4, 2, 6, 0.4


def dense(query, key, value, kept, is_causal):
    """[1, N, H, d] text by text, head by head. kept: (text, head) -> [n, n] zeros and ones."""
    out, start = torch.zeros(1, sum(LENGTHS), HEADS, WIDTH, dtype=query.dtype), 0
    for text, n in enumerate(LENGTHS):
        span = slice(start, start + n)
        for head in range(HEADS):
            q, k, v = query[0, head, span], key[0, head // 2, span], value[0, head // 2, span]
            scores = 0.5 * q @ k.T
            if is_causal:
                scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
            out[0, span, head] = (scores.softmax(dim=-1) * kept[text, head] / (1 - P)) @ v
        start += n
    return out


@pytest.mark.parametrize("sees", [earlier, whole_text])
def test_values_and_gradients(monkeypatch, sees):
    drawn, real = [], unpadded.draw_kept
    monkeypatch.setattr(unpadded, "draw_kept", lambda like, p: drawn.append(real(like, p)) or drawn[-1])
    torch.manual_seed(0)
    n = sum(LENGTHS)
    inputs = [torch.randn(1, h, n, WIDTH, dtype=torch.float64, requires_grad=True) for h in (HEADS, SHARED, SHARED)]
    segments = Segments(LENGTHS, torch.device("cpu"))
    out, _ = unpadded_attention(SimpleNamespace(sees=sees), *inputs, None, 0.5, segments=segments, dropout=P)
    kept = {}
    order = sorted(range(3), key=lambda i: -LENGTHS[i])
    for group, mask in zip(segments.groups(sees), drawn, strict=True):
        blocks = mask.view(SHARED, group.texts, HEADS // SHARED, group.width, group.width)
        for b in range(group.texts):
            text = order.pop(0)
            for head in range(HEADS):
                kept[text, head] = blocks[head // 2, b, head % 2, : LENGTHS[text], : LENGTHS[text]].double()
    wanted = dense(*inputs, kept, sees is earlier)
    assert float((out - wanted).detach().abs().max()) < 1e-6, "the softmax is taken in float32"
    weight = torch.randn_like(out)
    mine, theirs = (torch.autograd.grad((x * weight).sum(), inputs) for x in (out, wanted))
    assert max(float((a - b).abs().max()) for a, b in zip(mine, theirs, strict=True)) < 1e-5
    shares = torch.cat([m.flatten() for m in drawn]).double().mean()
    assert abs(float(shares) - (1 - P)) < 0.15
