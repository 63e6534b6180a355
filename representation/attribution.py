"""Attention of trained heads: of multilayer heads over layers, of lastlayer heads over classes of tokens.

Attention says what a head reads, not what its vector would lose without it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from analysis.drawings.drawing import Drawing
from analysis.render import Section, Table
from analysis.statistics.arrays import Floats
from encoders.tokens import Batch
from poolers.lastlayer import LastLayerTrainable
from poolers.multilayer import MultiLayerTrainable
from poolers.shared.base import Pooler, States, TokenView
from poolers.shared.cross_attention import CrossAttentionHead
from representation.encoders_studied import Studied
from representation.figures import heat_panels
from representation.sections import each
from representation.texts import Text, Texts, gathered
from representation.token_classes import CLASSES, TokenClasses, relative_entropy

PLACE = 50
NAME = "attribution"


def section(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Section | None:
    """Return how heads divide their attention, by task type; None where no pooler has a head over several keys."""
    candidates = [s for s in encoders if s.config["pooler"]["name"] in ("multilayer", "lastlayer")]  # load no others
    rows = [
        _rows(studied, kind, attributed(studied, texts, of))
        for studied in each(candidates, NAME, settings)
        if has_several_keys(studied.encoder().encoder.pooler)
        for kind, of in texts.of_type.items()
    ]
    if not rows:
        return None
    frame = pd.concat(rows, ignore_index=True)
    means = frame.groupby(["encoder", "type", "key"], sort=False)[["attention", "even", "entropy"]].mean().reset_index()
    of_tokens, occurring = means["key"].isin(CLASSES), means.groupby("key")["even"].transform("max") > 0
    parts = {"layers": means[~of_tokens], "tokens": means[of_tokens & occurring]}
    shown = {keys: part for keys, part in parts.items() if len(part)}
    tables = [_table(keys, part, texts.over) for keys, part in shown.items()]
    draw = [(keys, part, texts.over) for keys, part in shown.items()]
    return Section(NAME, "Attention of the heads", tables, lambda: [_drawing(*of) for of in draw], {NAME: frame})


@dataclass(frozen=True)
class Attributed:
    """Over n texts. names: K layers ("0", ... as pooler=layer counts them) or classes of tokens.

    attention: [n, K], mean over heads and queries; rows sum to one. even: [n, K], attention spread evenly over all
    keys. entropy: [n], that of attention over that of even attention, the mean over heads and queries.
    """

    names: list[str]
    attention: Floats
    even: Floats
    entropy: Floats


def has_several_keys(pooler: Pooler) -> bool:
    """Return whether it is a head over layers, or over the tokens of the last layer."""
    return isinstance(pooler, MultiLayerTrainable) or (
        isinstance(pooler, LastLayerTrainable) and pooler.tokens == "all"
    )


def attributed(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> Attributed:
    """Return the attention of the encoder's head, over layers or tokens, in each of `wanted`; one pass per text."""
    encoder = studied.encoder()
    model, pooler, classes = encoder.encoder, encoder.encoder.pooler, TokenClasses(encoder.tokenizer.tokenizer)
    assert isinstance(pooler, MultiLayerTrainable | LastLayerTrainable)

    def read(batch: Batch) -> dict[str, Floats]:
        states = model.states(batch)
        if isinstance(pooler, MultiLayerTrainable):
            parts = of_layers(pooler, states)
        else:
            parts = of_tokens(pooler, states, batch, classes(batch))
        rows = (part.double().cpu().numpy() for part in parts)
        return dict(zip(("attention", "even", "entropy"), rows, strict=True))

    names = [str(layer) for layer in pooler.layers] if isinstance(pooler, MultiLayerTrainable) else list(CLASSES)
    return Attributed(names, **gathered(texts.passes(studied, wanted, read), len(wanted)))


def attention_weights(
    head: CrossAttentionHead, states: Tensor, mask: Tensor | None = None, asked: Tensor | None = None
) -> Tensor:
    """Return [B, H, N, K] float32: the attention of N queries of H heads over the keys; rows sum to one.

    states: [B, K, D], mask: [B, K] bool, the keys that exist, asked: as `CrossAttentionHead.forward` takes them.
    softmax((LN(Q) W_q) (LN(x) W_k)^T / sqrt(d)).
    """
    keys = head.norm_keys(states.float())
    if mask is not None:
        keys = keys.masked_fill(~mask[..., None], 0.0)
    keys = head.key(keys).unflatten(-1, (head.num_heads, head.head_dim))
    queries = head.query(head.norm_queries(head.queries)).unflatten(-1, (head.num_heads, head.head_dim))
    scores = torch.einsum("nhd,bkhd->bhnk", queries, keys)
    if asked is not None:
        scores = scores + (head.moved(asked).transpose(1, 2) * keys).sum(dim=-1).transpose(1, 2)[:, :, None]
    scores = scores / math.sqrt(head.head_dim)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
    return scores.softmax(dim=-1)


def layer_attention(pooler: MultiLayerTrainable, states: States) -> Tensor:
    """Return [B, H, N, L]: attention of a multilayer head over its layers. states: the reductions of `pooler.layers`.

    With tokens="all" a layer has the attention of all its tokens together: e^(log of its softmax's denominator), over
    the sum of those of all layers.
    """
    assert isinstance(states, list)
    if pooler.tokens == "all":
        return torch.cat([part[..., -1:] for part in states], dim=-1).softmax(dim=-1)
    keys, asked = pooler.keys(torch.stack(states, dim=1))
    return attention_weights(pooler.head, keys, asked=asked)


def token_attention(pooler: LastLayerTrainable, states: States, tokens: TokenView) -> Tensor:
    """Return [B, H, N, T]: attention of a lastlayer head over the tokens that it reads, with pooler.tokens=all."""
    assert isinstance(states, Tensor)
    assert pooler.tokens == "all", "a head with one key has one weight"
    mask = pooler.pooled(tokens) if pooler.mask_padding else None
    return attention_weights(pooler.head, states, mask, pooler.asked(states, tokens))


def of_layers(pooler: MultiLayerTrainable, states: States) -> tuple[Tensor, ...]:
    """Return the parts of `Attributed` for a multilayer head: [B, L] twice, then [B]."""
    weights = layer_attention(pooler, states)
    count, attention = weights.shape[-1], weights.mean(dim=(1, 2))
    return attention, torch.full_like(attention, 1 / count), relative_entropy(weights, count).mean(dim=(1, 2))


def of_tokens(pooler: LastLayerTrainable, states: States, batch: Batch, classes: Tensor) -> tuple[Tensor, ...]:
    """Return the parts of `Attributed` for a lastlayer head: [B, C] twice, C classes of tokens, then [B].

    classes: [B, T]. Even attention to a class is its share of the tokens that the head reads.
    """
    weights = token_attention(pooler, states, batch.view)
    read = pooler.pooled(batch.view) if pooler.mask_padding else torch.ones_like(batch.view.real)
    count = read.sum(dim=1)
    member = F.one_hot(classes, len(CLASSES)).float() * read[..., None]
    attention = torch.einsum("bt,btc->bc", weights.mean(dim=(1, 2)), member)
    entropy = relative_entropy(weights, count[:, None, None].expand(weights.shape[:-1]))
    return attention, member.sum(dim=1) / count[:, None], entropy.mean(dim=(1, 2))


def _rows(studied: Studied, kind: str, read: Attributed) -> pd.DataFrame:
    """Return one row per key: means over texts."""
    return pd.DataFrame(
        {
            **{"encoder": studied.design, "seed": studied.seed, "type": kind, "key": read.names},
            **{"attention": read.attention.mean(axis=0), "even": read.even.mean(axis=0)},
            "std_over_texts": [of_key.std(ddof=1) for of_key in read.attention.T],
            **{"entropy": read.entropy.mean(), "texts": len(read.entropy)},
        }
    )


def _table(keys: str, means: pd.DataFrame, over: str) -> Table:
    """One row per encoder and key, a column per task type; even: over types."""
    wide = means.pivot_table(index=["encoder", "key"], columns="type", values="attention", sort=False)
    even = means.groupby(["encoder", "key"], sort=False)["even"].mean()
    caption = f"Attention to each of the {keys}, and even attention; mean over heads, queries, seeds and {over}."
    return Table(f"{NAME}_{keys}", f"Attention over {keys}", caption, wide.assign(even=even).reset_index(), left=2)


def _drawing(keys: str, means: pd.DataFrame, over: str) -> Drawing:
    """Draw log2 of attention over even attention, by task type and key: +1 is twice what even attention would give."""
    with np.errstate(divide="ignore"):
        ratio = np.log2(means["attention"] / means["even"].where(means["even"] > 0))
    scale = "log2 of attention over even"
    drawn = heat_panels(means.assign(ratio=ratio), ("type", "key", "ratio"), ("", keys), scale, centre=0)
    caption = f"Attention over what even attention would give, logarithm to base 2, by task type, over {over}."
    return Drawing(f"{NAME}_{keys}", f"Attention over {keys}", caption, drawn)
