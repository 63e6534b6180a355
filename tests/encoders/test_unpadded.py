"""Attention without padding, against literal block-diagonal masks in float64."""

import inspect
import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from torch.nn.attention import varlen

from encoders.attention.layout import arranged
from encoders.attention.pattern import earlier, whole_text
from encoders.attention.unpadded import SLACK, UNPADDED, Segments, _by_kernel, unpadded_attention
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


@pytest.mark.parametrize("sees", [earlier, whole_text])
def test_what_the_gpu_s_kernel_is_given(monkeypatch, sees):
    """It runs on a GPU only: here an own loop over its arguments stands in, and torch's signature is checked."""
    signature = inspect.signature(varlen.varlen_attn)

    def loop(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        assert given["window_size"] == ((-1, 0) if sees is earlier else (-1, -1))
        assert given["enable_gqa"] and given["num_splits"] == 1 and given["max_q"] == max(LENGTHS)  # noqa: PT018
        parts = []
        for a, b in itertools.pairwise(given["cu_seq_q"].tolist()):
            q, k, v = (given[n][a:b].transpose(0, 1) for n in ("query", "key", "value"))
            own = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=sees is earlier, scale=given["scale"], enable_gqa=True
            )
            parts.append(own.transpose(0, 1))
        return torch.cat(parts)

    monkeypatch.setattr(varlen, "varlen_attn", loop)
    segments = Segments(LENGTHS, torch.device("cpu"))
    out = _by_kernel(*tensors(), WIDTH**-0.5, segments, sees)
    assert (out - literal(*tensors(), sees is earlier)).abs().max() < 1e-6


class _Decoder(torch.nn.Module):
    class config:  # noqa: N801  (as transformers spells it)
        _attn_implementation = UNPADDED
