"""Where a trained head looks: the softmax weights of its queries, worked out from the head's own parameters."""

import math

import torch
from torch import Tensor

from poolers.base import States, TokenView
from poolers.cross_attention import CrossAttentionHead
from poolers.lastlayer import LastLayerTrainable
from poolers.multilayer import MultiLayerTrainable


def attention_weights(head: CrossAttentionHead, states: Tensor, mask: Tensor | None = None) -> Tensor:
    """[B, H, N, K] float32: how each of N queries of H heads divides its attention over the keys; rows sum to one.

    states: [B, K, D], mask: [B, K] bool, the keys that exist, as `CrossAttentionHead.forward` takes them.
    softmax((LN(Q) W_q) (LN(x) W_k)^T / sqrt(d)).
    """
    keys = head.norm_keys(states.float())
    if mask is not None:
        keys = keys.masked_fill(~mask[..., None], 0.0)
    keys = head.key(keys).unflatten(-1, (head.num_heads, head.head_dim))
    queries = head.query(head.norm_queries(head.queries)).unflatten(-1, (head.num_heads, head.head_dim))
    scores = torch.einsum("nhd,bkhd->bhnk", queries, keys) / math.sqrt(head.head_dim)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
    return scores.softmax(dim=-1)


def layer_attention(pooler: MultiLayerTrainable, states: States) -> Tensor:
    """[B, H, N, L]: attention of a multilayer head over its layers. states: the reductions of `pooler.layers`.

    With tokens="all" a layer has the attention of all its tokens together: e^(log of its softmax's denominator), over
    the sum of those of all layers.
    """
    assert isinstance(states, list)
    if pooler.tokens == "all":
        return torch.cat([part[..., -1:] for part in states], dim=-1).softmax(dim=-1)
    stacked = torch.stack(states, dim=1)
    return attention_weights(pooler.head, stacked if pooler.layer_weights is None else stacked + pooler.layer_weights)


def token_attention(pooler: LastLayerTrainable, states: States, tokens: TokenView) -> Tensor:
    """[B, H, N, T]: attention of a lastlayer head over the tokens that it reads, with pooler.tokens=all."""
    assert isinstance(states, Tensor)
    assert pooler.tokens == "all", "a head with one key has one weight"
    return attention_weights(pooler.head, states, pooler.pooled(tokens) if pooler.mask_padding else None)


def relative_entropy(weights: Tensor, keys: Tensor | int) -> Tensor:
    """Entropy of weights [..., K] over that of attention spread evenly: 1 is even, 0 is all on one key.

    keys: how many keys there are, a number or a tensor that fits [...]; of one key alone it is 1.
    """
    entropy = torch.special.entr(weights.double()).sum(dim=-1)
    most = torch.log(torch.as_tensor(keys, dtype=torch.float64, device=weights.device))
    return torch.where(most > 0, entropy / most.clamp(min=1e-12), torch.ones_like(entropy))
