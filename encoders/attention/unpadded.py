"""Attention without padding: the texts of a batch stand one after another in one row, and each sees only itself."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from inspect import signature
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from encoders.attention.pattern import Sees, earlier, whole_text
from encoders.fast.passes import draw_kept

UNPADDED = "unpadded"  # model.attn_implementation
# How far back and ahead tokens see, in the terms of torch's kernel for texts of any length.
WINDOWS: dict[Sees, tuple[int, int]] = {earlier: (-1, 0), whole_text: (-1, -1)}
SLACK = 1.3  # places per token that a group of texts may take in attention; linear layers always take one


@dataclass(frozen=True)
class Segments:
    """The places of texts in a row of N tokens: `lengths` of each, in order."""

    lengths: tuple[int, ...]
    device: torch.device
    _groups: dict[Sees, list["Group"]] = field(init=False, default_factory=dict, compare=False)

    def groups(self, sees: Sees) -> list["Group"]:
        """Texts of like length, attended together; longest first. sees: what their tokens see."""
        if sees not in self._groups:
            starts = [0, *accumulate(self.lengths)]
            self._groups[sees] = [
                Group.of([starts[i] for i in texts], [self.lengths[i] for i in texts], sees, self.device)
                for texts in self._members
            ]
        return self._groups[sees]

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

    Padding repeats a token of its text. real: [b * t] numbers of the places that are no padding; None: all are.
    bias: [b or 1, 1, t, t] float32, minus infinity where a query must not see a key, else zero; None: all may.
    """

    places: Tensor
    real: Tensor | None
    bias: Tensor | None
    texts: int
    width: int

    @staticmethod
    def of(starts: list[int], lengths: list[int], sees: Sees, device: torch.device) -> "Group":
        """The block of the texts that begin at `starts`, whose tokens see what `sees` says."""
        first, count = torch.tensor(starts)[:, None], torch.tensor(lengths)[:, None]
        column = torch.arange(max(lengths))
        real = column < count
        within = column.minimum(count - 1)
        hidden = None if real.all() else ~real[:, None, None, :]
        if sees is not whole_text:  # what stands at padding sees what its text's last token does
            queries = column if hidden is None else within[:, None]
            unseen = ~sees(queries[..., None], column)
            hidden = unseen[None, None] if hidden is None else hidden | unseen
        bias = None if hidden is None else torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)
        numbers = None if real.all() else real.flatten().nonzero().squeeze(1).to(device)
        places = (first + within).flatten().to(device)
        return Group(places, numbers, None if bias is None else bias.to(device), len(starts), len(column))

    @cached_property
    def real_places(self) -> Tensor:
        """[b * t] `places`, with -1 at padding."""
        if self.real is None:
            return self.places
        return torch.full_like(self.places, -1).index_copy_(0, self.real, self.places[self.real])

    def block(self, x: Tensor, shared: int, real_only: bool = False) -> Tensor:
        """[s, b, g * t, d] of x: [H, N, d], the g = H / s heads of a key head together. real_only: padding is zero."""
        heads, _, width = x.shape
        rows = x.index_select(1, self.places)
        if real_only and self.real is not None:
            rows = torch.zeros_like(rows).index_copy_(1, self.real, rows.index_select(1, self.real))
        rows = rows.view(shared, heads // shared, self.texts, self.width, width).transpose(1, 2)
        return rows.reshape(shared, self.texts, -1, width)

    def put(self, out: Tensor, block: Tensor) -> None:
        """Write a block [s, b, g * t, d] to its tokens in out: [N, H, d]."""
        rows = block.unflatten(2, (-1, self.width)).permute(1, 3, 0, 2, 4).reshape(-1, *out.shape[1:])
        if self.real is None:
            out.index_copy_(0, self.places, rows)
        else:
            out.index_copy_(0, self.places[self.real], rows[self.real])


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
    sees = getattr(module, "sees", earlier)  # what a decoder does whose attention nothing has set
    is_16_bit = value.dtype in (torch.bfloat16, torch.float16)
    may_be = query.is_cuda and is_16_bit and not dropout and sees in WINDOWS
    if may_be and kernel_holds(query.device, value.dtype, query.shape[-1]):
        return _by_kernel(query, key, value, scaling, segments, sees), None
    return _RowAttention.apply(query, key, value, scaling, segments.groups(sees), dropout), None


class _RowAttention(torch.autograd.Function):
    """(M * softmax(scaling Q K^T + bias)) V, text by text; products in the format of V, the softmax in float32.

    M: 1 / (1 - p) where dropout keeps a weight, else zero; all ones without dropout.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """Return [1, N, H, d]. inputs: query, key, value, scaling, groups, dropout."""
        query, key, value, scaling, groups, dropout = inputs
        heads, count, width = query.shape[1:]
        shared = key.shape[1]
        q, k, v = (query[0] * scaling).to(value.dtype), key[0].to(value.dtype), value[0]
        out = v.new_empty(count, heads, width)
        kept, masks = [], []
        for group in groups:
            of_q, of_k, of_v = group.block(q, shared), group.block(k, shared), group.block(v, shared)
            scores = (of_q @ of_k.transpose(2, 3)).float()
            if group.bias is not None:
                scores.view(shared, group.texts, heads // shared, group.width, group.width).add_(group.bias)
            weights = scores.softmax(dim=-1).to(v.dtype)
            if dropout:
                masks.append(draw_kept(weights, dropout))
            group.put(out, _dropped(weights, masks, dropout) @ of_v)
            kept.append(weights)
        ctx.save_for_backward(q, k, v, out, *kept, *masks)
        ctx.scaling, ctx.groups, ctx.dtypes, ctx.dropout = scaling, groups, (query.dtype, key.dtype), dropout
        return out[None]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """dS = P (M dP - sum of dO O), as in FlashAttention (Dao et al. 2022, arXiv 2205.14135, appendix B.2).

        dP = dO V^T. The sum over keys of M P dP is dO O with dropout too, since O = (M P) V.
        """
        q, k, v, out, *saved = ctx.saved_tensors
        count = len(ctx.groups)
        kept, masks, p = saved[:count], saved[count:], ctx.dropout
        shared, g = k.shape[0], gradients[0][0]
        sums = (g * out).sum(dim=-1, keepdim=True)
        of_q, of_k, of_v = (x.new_empty(x.shape[1], x.shape[0], x.shape[2]) for x in (q, k, v))
        for i, (group, weights) in enumerate(zip(ctx.groups, kept, strict=True)):
            mask = masks[i : i + 1]
            of_out, of_sum = (group.block(x.transpose(0, 1), shared, real_only=True) for x in (g, sums))
            group.put(of_v, _dropped(weights, mask, p).transpose(2, 3) @ of_out)
            of_scores = _dropped(of_out @ group.block(v, shared).transpose(2, 3), mask, p).sub_(of_sum).mul_(weights)
            group.put(of_q, of_scores @ group.block(k, shared))
            group.put(of_k, of_scores.transpose(2, 3) @ group.block(q, shared))
        of_q, of_k, of_v = (x.transpose(0, 1)[None] for x in (of_q, of_k, of_v))
        return (of_q * ctx.scaling).to(ctx.dtypes[0]), of_k.to(ctx.dtypes[1]), of_v, None, None, None


def _dropped(x: Tensor, masks: list[Tensor], p: float) -> Tensor:
    """x times the last of `masks` (zeros and ones) / (1 - p); x itself where there is none."""
    return x * (masks[-1].to(x.dtype) / (1 - p)) if masks else x


@cache
@torch.no_grad()
def kernel_holds(device: torch.device, dtype: torch.dtype, width: int) -> bool:
    """Return whether torch's kernel for texts of any length runs on `device` and gives two texts what groups give."""
    try:
        from torch.nn.attention import varlen

        parameters = frozenset(signature(varlen.varlen_attn).parameters)
        if not may_run(parameters, torch.cuda.get_device_capability(device), width):
            return False
        draw = torch.Generator().manual_seed(0)
        q, k, v = (torch.randn(1, heads, 12, width, generator=draw).to(device, dtype) for heads in (4, 2, 2))
        for sees in WINDOWS:
            segments, scaling = Segments((7, 5), device), width**-0.5
            out = _by_kernel(q, k, v, scaling, segments, sees).float()
            wanted: Tensor = _RowAttention.apply(q, k, v, scaling, segments.groups(sees), 0.0).float()
            if (out - wanted).abs().max() > 8 * torch.finfo(dtype).eps * wanted.abs().max():
                return False
    except (ImportError, RuntimeError, TypeError, ValueError, NotImplementedError):
        return False
    return True


def may_run(parameters: frozenset[str], capability: tuple[int, int], width: int) -> bool:
    """Return whether a GPU of `capability` runs FlashAttention on heads of `width` by a function of `parameters`.

    It needs Ampere or newer and a width of at most 256 that 8 divides (Dao 2023, arXiv 2307.08691, and torch's checks).
    Without `num_splits` torch cuts sums as the batch has it, without `enable_gqa` it knows no shared key heads.
    """
    needed = {"scale", "window_size", "enable_gqa", "num_splits"}
    return needed <= parameters and capability >= (8, 0) and width <= 256 and width % 8 == 0


def _by_kernel(  # noqa: PLR0917
    query: Tensor, key: Tensor, value: Tensor, scaling: float, segments: Segments, sees: Sees
) -> Tensor:
    """[1, N, H, d] by torch's kernel for texts of any length (FlashAttention; GPUs, 16 bits)."""
    from torch.nn.attention.varlen import varlen_attn

    q, k, v = (x[0].transpose(0, 1).to(value.dtype) for x in (query, key, value))
    bounds, longest = segments.bounds, max(segments.lengths)
    how: dict[str, Any] = {"scale": scaling, "window_size": WINDOWS[sees], "enable_gqa": query.shape[1] != key.shape[1]}
    how["num_splits"] = 1  # or a text's sums would be cut according to its batch mates
    out: Any = varlen_attn(q, k, v, bounds, bounds, longest, longest, **how)
    return out[None]


AttentionInterface.register(UNPADDED, unpadded_attention)
AttentionMaskInterface.register(UNPADDED, lambda *_, **__: None)
