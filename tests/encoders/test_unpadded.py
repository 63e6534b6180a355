"""Attention without padding, against literal block-diagonal masks in float64."""

import math
from types import SimpleNamespace

import pytest
import torch

from encoders.attention.layout import arranged
from encoders.attention.pattern import earlier, whole_text
from encoders.attention.unpadded import SLACK, UNPADDED, Segments, unpadded_attention
from encoders.tokens import Batch
from poolers.shared.base import EOS, PAD, TEXT

LENGTHS = (3, 9, 1, 8, 2, 9)
HEADS, SHARED, WIDTH = 6, 2, 4


def seeing(sees):
    """Stands for an attention module whose tokens see `sees`."""
    return SimpleNamespace(sees=sees)


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


@pytest.mark.parametrize("sees", [earlier, whole_text])
def test_outputs_and_gradients(sees):
    segments = Segments(LENGTHS, torch.device("cpu"))
    assert len(segments.groups(sees)) > 1, "several groups, or the test is easier than a batch"
    own, exact = tensors(), tensors()
    out, weights = unpadded_attention(seeing(sees), *own, None, WIDTH**-0.5, segments=segments)
    wanted = literal(*exact, sees is earlier)
    assert weights is None
    assert (out - wanted).abs().max() < 1e-6
    weighting = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    (out * weighting).sum().backward()
    (wanted * weighting).sum().backward()
    for one, other in zip(own, exact, strict=True):
        assert (one.grad - other.grad).abs().max() < 2e-6


def test_groups_hold_every_token_once_and_little_padding():
    segments = Segments(LENGTHS, torch.device("cpu"))
    found, places = [], 0
    for group in segments.groups(earlier):
        found += (group.places if group.real is None else group.places[group.real]).tolist()
        places += len(group.places)
    assert sorted(found) == list(range(sum(LENGTHS)))
    assert places <= SLACK * sum(LENGTHS)
    assert segments.bounds.tolist() == [0, 3, 12, 13, 21, 23, 32]


@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_and_back(side):
    """What the decoder is given, and where its states go, written out."""
    ids = torch.tensor([[11, 12, 13], [21, 0, 0]] if side == "right" else [[11, 12, 13], [0, 0, 21]])
    roles = torch.where(ids > 0, TEXT, PAD)
    roles[0, 2] = EOS
    positions = torch.tensor([[0, 1, 2], [0, 0, 0]])
    rows = arranged(_Decoder(), Batch(ids, roles, positions))
    assert rows.inputs["input_ids"].tolist() == [[11, 12, 13, 21]]
    assert rows.inputs["position_ids"].tolist() == [[0, 1, 2, 0]]
    assert rows.inputs["segments"].lengths == (3, 1)
    back = rows.padded(rows.inputs["input_ids"][..., None].float())
    assert back[..., 0].tolist() == ids.tolist()


class _Decoder(torch.nn.Module):
    class config:  # noqa: N801  (as transformers spells it)
        _attn_implementation = UNPADDED
