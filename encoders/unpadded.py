"""Attention without padding: the texts of a batch stand one after another in one row, and each sees only itself."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

UNPADDED = "unpadded"  # model.attn_implementation
SLACK = 1.3  # places a token that a group of texts may take in attention; linear layers take one always


@dataclass(frozen=True)
class Segments:
    """Where the texts lie in a row of N tokens: `lengths` of each, in order. is_causal: tokens see none after them."""

    lengths: tuple[int, ...]
    is_causal: bool
    device: torch.device

    @cached_property
    def groups(self) -> list["Group"]:
        """Texts of like length, attended together; longest first."""
        order = sorted(range(len(self.lengths)), key=lambda i: -self.lengths[i])
        members: list[list[int]] = []
        tokens = 0
        for i in order:
            n = self.lengths[i]
            if members and self.lengths[members[-1][0]] * (len(members[-1]) + 1) <= SLACK * (tokens + n):
                members[-1].append(i)
                tokens += n
            else:
                members.append([i])
                tokens = n
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [Group.of([starts[i] for i in m], [self.lengths[i] for i in m], self) for m in members]

    @cached_property
    def bounds(self) -> Tensor:
        """[B + 1] int32: where each text begins, and the end of the last."""
        ends = torch.tensor([0, *self.lengths]).cumsum(0)
        return ends.to(self.device, torch.int32)


@dataclass(frozen=True)
class Group:
    """b texts as a padded block. places: [b * t] numbers of tokens in the row (padding repeats a token of its text).

    real: [b * t] bool; hidden: [b, 1, t, t] bool, pairs (query, key) that must not see each other; None: all may.
    """

    places: Tensor
    real: Tensor | None
    hidden: Tensor | None
    texts: int

    @staticmethod
    def of(starts: list[int], lengths: list[int], segments: Segments) -> "Group":
        """The block of the texts that begin at `starts`."""
        first, count = torch.tensor(starts)[:, None], torch.tensor(lengths)[:, None]
        column = torch.arange(max(lengths))
        real = column < count
        hidden = ~real[:, None, None, :] if not real.all() else None
        if segments.is_causal:
            later = torch.ones(len(column), len(column), dtype=torch.bool).triu(1)[None, None]
            hidden = later if hidden is None else hidden | later
        places = first + column.minimum(count - 1)
        device = segments.device
        return Group(
            places.flatten().to(device),
            None if real.all() else real.flatten().to(device),
            None if hidden is None else hidden.to(device),
            len(starts),
        )


def unpadded_attention(  # noqa: PLR0917  (as transformers calls it)
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    segments: Segments | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """softmax(scaling Q K^T) V inside each text. query: [1, H, N, d]; key, value: [1, H / g, N, d].

    Returns ([1, N, H, d], None). Query head h reads key head h // g, as in grouped-query attention.
    """
    assert segments is not None, "a row of texts comes with its segments"
    assert attention_mask is None, "a row of texts has no mask"
    if query.is_cuda and value.dtype in (torch.bfloat16, torch.float16):
        return _by_kernel(query, key, value, scaling, segments), None
    parts = [_of_group(query, key, value, scaling, group) for group in segments.groups]
    if len(parts) == 1 and segments.groups[0].real is None:
        order = segments.groups[0].places
        rows = parts[0]
    else:
        order = torch.cat([g.places if g.real is None else g.places[g.real] for g in segments.groups])
        rows = torch.cat([p if g.real is None else p[g.real] for p, g in zip(parts, segments.groups, strict=True)])
    return torch.zeros_like(rows).index_copy(0, order, rows)[None], None


def _of_group(query: Tensor, key: Tensor, value: Tensor, scaling: float, group: Group) -> Tensor:
    """[b * t, H, d] attention of the texts of a group."""
    heads, shared = query.shape[1], key.shape[1]
    b, t, d = group.texts, len(group.places) // group.texts, query.shape[-1]
    # [H, N, d] -> [b, H/g, g * t, d]: the g heads that share a key head are rows of one product
    q = (query[0] * scaling).to(value.dtype).transpose(0, 1)[group.places]
    q = q.view(b, t, shared, heads // shared, d).permute(0, 2, 3, 1, 4).reshape(b, shared, -1, d)
    k, v = (x[0].to(value.dtype).transpose(0, 1)[group.places] for x in (key, value))
    k, v = (x.view(b, t, shared, d).transpose(1, 2) for x in (k, v))
    scores = (q @ k.transpose(2, 3)).float().view(b, heads, t, t)
    if group.hidden is not None:
        scores = scores.masked_fill(group.hidden, -torch.inf)
    out = scores.softmax(dim=-1).to(v.dtype).view(b, shared, -1, t) @ v
    return out.view(b, heads, t, d).transpose(1, 2).reshape(b * t, heads, d)


def _by_kernel(query: Tensor, key: Tensor, value: Tensor, scaling: float, segments: Segments) -> Tensor:
    """[1, N, H, d] by torch's kernel for texts of any length (FlashAttention; GPUs, 16 bits)."""
    from torch.nn.attention.varlen import varlen_attn

    q, k, v = (x[0].transpose(0, 1).to(value.dtype) for x in (query, key, value))
    longest = max(segments.lengths)
    out = varlen_attn(
        q,
        k,
        v,
        segments.bounds,
        segments.bounds,
        longest,
        longest,
        scale=scaling,
        window_size=(-1, 0) if segments.is_causal else (-1, -1),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    assert isinstance(out, Tensor)
    return out[None]


AttentionInterface.register(UNPADDED, unpadded_attention)
AttentionMaskInterface.register(UNPADDED, lambda *_, **__: None)
