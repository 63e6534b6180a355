"""Attention without padding: the texts of a batch stand one after another in one row, and each sees only itself."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from inspect import signature
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from encoders.attention.pattern import MaskFn, earlier, whole_text
from encoders.fused_lora import draw_kept

UNPADDED = "unpadded"  # model.attn_implementation
# How far back and ahead tokens see, in the terms of torch's kernel for texts of any length.
WINDOWS: dict[MaskFn, tuple[int, int]] = {earlier: (-1, 0), whole_text: (-1, -1)}
SLACK = 1.3  # places per token that a group of texts may take in attention; linear layers always take one


@dataclass(frozen=True)
class Segments:
    """The places of texts in a row of N tokens: `lengths` of each, in order."""

    lengths: tuple[int, ...]
    device: torch.device
    _groups: dict[MaskFn, list["Group"]] = field(init=False, default_factory=dict, compare=False)

    def groups(self, mask_fn: MaskFn) -> list["Group"]:
        """Texts of like length, attended together; longest first. mask_fn: what their tokens see."""
        if mask_fn not in self._groups:
            starts = [0, *accumulate(self.lengths)]
            self._groups[mask_fn] = [
                Group.of([starts[i] for i in texts], [self.lengths[i] for i in texts], mask_fn, self.device)
                for texts in self._members
            ]
        return self._groups[mask_fn]

    @cached_property
    def back(self) -> Tensor:
        """[N], the place of each token among those of all groups, one after another."""
        widths = {i: self.lengths[texts[0]] for texts in self._members for i in texts}
        ends = dict(zip(widths, accumulate(widths.values()), strict=True))
        first = [ends[i] - widths[i] for i in range(len(self.lengths))]
        places = [torch.arange(start, start + n) for start, n in zip(first, self.lengths, strict=True)]
        return torch.cat(places).to(self.device)

    @cached_property
    def _members(self) -> list[list[int]]:
        """The texts of each group."""
        members: list[list[int]] = []
        tokens = 0  # of the last group
        for i in sorted(range(len(self.lengths)), key=lambda i: -self.lengths[i]):
            tokens += self.lengths[i]
            if members and self.lengths[members[-1][0]] * (len(members[-1]) + 1) <= SLACK * tokens:
                members[-1].append(i)
            else:
                members.append([i])
                tokens = self.lengths[i]
        return members

    @cached_property
    def bounds(self) -> Tensor:
        """[B + 1] int32: where each text begins, and the end of the last."""
        return torch.tensor([0, *self.lengths]).cumsum(0).to(self.device, torch.int32)


@dataclass(frozen=True)
class Group:
    """b texts as a block of t = `width` tokens each. places: [b * t] numbers of tokens in the row.

    Padding repeats the last token of its text. bias: [b or 1, 1, t, t] float32, minus infinity where a query must not
    see a key, else zero; None: all may.
    """

    places: Tensor
    bias: Tensor | None
    texts: int
    width: int

    @staticmethod
    def of(starts: list[int], lengths: list[int], mask_fn: MaskFn, device: torch.device) -> "Group":
        """The block of the texts that begin at `starts`, whose tokens see what `mask_fn` says."""
        first, count = torch.tensor(starts)[:, None], torch.tensor(lengths)[:, None]
        column = torch.arange(max(lengths))
        real = column < count
        within = column.minimum(count - 1)
        hidden = None if real.all() else ~real[:, None, None, :]
        if mask_fn is not whole_text:  # what stands at padding sees what its text's last token does
            queries = column if hidden is None else within[:, None]
            unseen = ~mask_fn(queries[..., None], column)
            hidden = unseen[None, None] if hidden is None else hidden | unseen
        bias = None if hidden is None else torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)
        places = (first + within).flatten().to(device)
        return Group(places, None if bias is None else bias.to(device), len(starts), len(column))

    def block(self, x: Tensor, shared: int) -> Tensor:
        """[s, b, g * t, d] of x: [H, N, d], the g = H / s heads of a key head together."""
        heads, _, width = x.shape
        rows = x.index_select(1, self.places).view(shared, heads // shared, self.texts, self.width, width)
        return rows.transpose(1, 2).reshape(shared, self.texts, -1, width)

    def rows(self, block: Tensor, heads: int) -> Tensor:
        """[b * t, H, d] of a block [s, b, g * t, d]: a row for each of `places`."""
        return block.unflatten(2, (-1, self.width)).permute(1, 3, 0, 2, 4).reshape(-1, heads, block.shape[-1])


def unpadded_attention(  # noqa: PLR0917  (as transformers calls it)
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    segments: Segments | None = None,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, None]:
    """dropout(softmax(scaling Q K^T)) V inside each text. query: [1, H, N, d]; key, value: [1, H / g, N, d].

    Returns ([1, N, H, d], None). Query head h reads key head h // g, as in grouped-query attention. dropout: the
    probability with which a weight of attention is dropped; transformers gives zero outside training.
    """
    assert segments is not None, "a row of texts comes with its segments"
    assert attention_mask is None, "a row of texts has no mask"
    mask_fn = getattr(module, "mask_fn", earlier)  # what a decoder does whose attention nothing has set
    is_16_bit = value.dtype in (torch.bfloat16, torch.float16)
    may_be = query.is_cuda and is_16_bit and not dropout and mask_fn in WINDOWS
    if may_be and kernel_holds(query.device, value.dtype, query.shape[-1]):
        return _by_kernel(query, key, value, scaling, segments, mask_fn), None
    return _by_groups(query, key, value, scaling, segments, mask_fn, dropout), None


def _by_groups(  # noqa: PLR0917
    query: Tensor, key: Tensor, value: Tensor, scaling: float, segments: Segments, mask_fn: MaskFn, dropout: float = 0.0
) -> Tensor:
    """[1, N, H, d] text by text; products in the format of V, the softmax in float32."""
    heads, shared, rows = query.shape[1], key.shape[1], []
    q, k, v = (query[0] * scaling).to(value.dtype), key[0].to(value.dtype), value[0]
    for group in segments.groups(mask_fn):
        scores = group.block(q, shared) @ group.block(k, shared).transpose(2, 3)
        if group.bias is not None:
            scores = (scores.unflatten(2, (-1, group.width)) + group.bias).flatten(2, 3)
        weights = scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype)
        if dropout:
            weights = weights * draw_kept(weights, dropout) / (1 - dropout)
        rows.append(group.rows(weights @ group.block(v, shared), heads))
    return torch.cat(rows).index_select(0, segments.back)[None]


@cache
@torch.no_grad()
def kernel_holds(device: torch.device, dtype: torch.dtype, width: int) -> bool:
    """Return whether torch's kernel for texts of any length runs on `device` and gives two texts what groups give.

    It raises below Ampere and for a width above 256 or that 8 does not divide (Dao 2023, arXiv 2307.08691).
    """
    try:
        draw = torch.Generator().manual_seed(0)
        q, k, v = (torch.randn(1, heads, 12, width, generator=draw).to(device, dtype) for heads in (4, 2, 2))
        for mask_fn in WINDOWS:
            segments, scaling = Segments((7, 5), device), width**-0.5
            out = _by_kernel(q, k, v, scaling, segments, mask_fn).float()
            wanted = _by_groups(q, k, v, scaling, segments, mask_fn).float()
            if (out - wanted).abs().max() > 8 * torch.finfo(dtype).eps * wanted.abs().max():
                return False
    except torch.OutOfMemoryError:  # says nothing of the kernel
        raise
    except (ImportError, RuntimeError, TypeError, ValueError, NotImplementedError):
        return False
    return True


def _by_kernel(  # noqa: PLR0917
    query: Tensor, key: Tensor, value: Tensor, scaling: float, segments: Segments, mask_fn: MaskFn
) -> Tensor:
    """[1, N, H, d] by torch's kernel for texts of any length (FlashAttention; GPUs, 16 bits)."""
    from torch.nn.attention.varlen import varlen_attn

    q, k, v = (x[0].transpose(0, 1).to(value.dtype) for x in (query, key, value))
    bounds, longest = segments.bounds, max(segments.lengths)
    how: dict[str, Any] = {"scale": scaling, "window_size": WINDOWS[mask_fn]}
    known, group = signature(varlen_attn).parameters, query.shape[1] // key.shape[1]
    if "num_splits" in known and torch.__version__ >= "2.13":  # earlier ones never split; 2.12 wants FA3 for it
        how["num_splits"] = 1  # or a text's sums would be cut according to its batch mates
    if "enable_gqa" in known:
        how["enable_gqa"] = group > 1
    elif group > 1:
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    out: Any = varlen_attn(q, k, v, bounds, bounds, longest, longest, **how)
    return out[None]


AttentionInterface.register(UNPADDED, unpadded_attention)
AttentionMaskInterface.register(UNPADDED, lambda *_, **__: None)
