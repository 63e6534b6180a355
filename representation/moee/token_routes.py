"""The experts that the router of adapter=mixse gives the tokens of texts: counted by sublayer and class of token."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from encoders.encoder import routers
from encoders.tokens import Batch
from poolers.shared.base import Pooler, RoutedStates, States, TokenView
from representation.encoders_studied import Studied
from representation.moee.clusters import agreement, shared_information
from representation.texts import Arrays, Text, Texts, gathered
from representation.token_classes import (
    CLASSES,
    CONTENT,
    FILLED,
    FUNCTION,
    PUNCTUATION,
    TokenClasses,
    relative_entropy,
)

OWN = [CONTENT, FUNCTION, PUNCTUATION]  # classes of a text's own tokens: the instruction would tell the task
ALL = "all"  # sublayers together


class TokenWeights(Pooler):
    """The routing weights of all tokens, as the encoder collects them for a pooler. No parameters."""

    consumes = "routers"

    def __init__(self, hidden_size: int, num_layers: int) -> None:
        super().__init__(hidden_size, num_layers)
        self.layers = ()

    def reduce_routing(self, layer: int, logits: Tensor, tokens: TokenView) -> Tensor:
        """[B, T, experts] of one sublayer."""
        return logits.softmax(dim=-1)

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, R, T, E] of R sublayers and E experts."""
        assert isinstance(states, RoutedStates)
        return torch.stack(states.routing, dim=1)


def token_weights(studied: Studied, batch: Batch) -> Tensor:
    """Return [B, R, T, E], the softmax of the routers' logits over all routed experts, before top-k."""
    model = studied.encoder().encoder
    pooler = TokenWeights(model.pooler.hidden_size, model.pooler.num_layers)
    return pooler(model.collected(batch, {"": pooler})[""], batch.view)


def sublayers(studied: Studied) -> list[str]:
    """Return the names of the R sublayers: "0 self_attn", "0 mlp", ..."""
    return [router.name for router in routers(studied.encoder().encoder.backbone)]


def routed_experts(studied: Studied) -> list[str]:
    """Return the names of the E routed experts: the run that each was, or its number where it was drawn."""
    manifest, adapter = studied.candidate.manifest, studied.config["adapter"]
    runs = [f"{i} {fact['run'].rpartition('/')[0]}" for i, fact in enumerate(manifest.get("experts", []))]
    return (runs or [str(i) for i in range(adapter["experts"])])[int(adapter["always"]) :]


def routes(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> Arrays:
    """Return of N texts counts [N, R, C, E], entropy [N, R, C] and weights [N, R, E], from one pass per text.

    counts: tokens of a class whose largest weight an expert has. entropy: of the weights over log E, summed over the
    tokens of a class. weights: their mean over a text's own tokens. C: `CLASSES` without padding.
    """
    classes = TokenClasses(studied.encoder().tokenizer.tokenizer)

    def read(batch: Batch) -> Arrays:
        weights = token_weights(studied, batch)
        member = F.one_hot(classes(batch), len(CLASSES))[..., :FILLED].to(weights.dtype)
        first = F.one_hot(weights.argmax(dim=-1), weights.shape[-1]).to(weights.dtype)
        evenness = relative_entropy(weights, weights.shape[-1]).to(weights.dtype)
        own_tokens = member[..., OWN].sum(dim=-1)
        own_tokens = own_tokens / own_tokens.sum(dim=1, keepdim=True).clamp(min=1)
        tensors = {
            "counts": torch.einsum("brte,btc->brce", first, member),
            "entropy": torch.einsum("brt,btc->brc", evenness, member),
            "weights": torch.einsum("brte,bt->bre", weights, own_tokens),
        }
        return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}

    return gathered(texts.passes(studied, wanted, read), len(wanted))


def measured(routing: Arrays, kinds: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for all sublayers and for each of `names`: how even its weights are, and what its choice goes with.

    routing: as `routes`; kinds: [N] the type of each text. entropy: mean over own tokens, 1 where weights are even.
    largest: share of own tokens with the expert that has most. text_nmi, text_mutual: agreement of a text's type with
    the expert of largest mean weight in it (`agreement`). token_nmi, class_nmi: normalised mutual information of a
    token's expert with the type of its text, and with its class.
    """
    types, of_text = np.unique(kinds, return_inverse=True)
    counts, evenness, weights = (routing[name].astype(np.float64) for name in ("counts", "entropy", "weights"))
    parts = {ALL: (counts.sum(axis=1), evenness.sum(axis=1), weights.mean(axis=1))}
    parts |= {name: (counts[:, r], evenness[:, r], weights[:, r]) for r, name in enumerate(names)}
    rows = []
    for name, (count, even, weight) in parts.items():
        own_counts = count[:, OWN].sum(axis=1)
        of_types = np.stack([own_counts[of_text == k].sum(axis=0) for k in range(len(types))])
        of_texts = agreement(of_text, weight.argmax(axis=1))
        rows.append(
            {
                "sublayer": name,
                "entropy": float(even[:, OWN].sum() / own_counts.sum()),
                "largest": float(own_counts.sum(axis=0).max() / own_counts.sum()),
                "text_nmi": of_texts["nmi"],
                "text_mutual": of_texts["mutual"],
                "token_nmi": shared_information(of_types),
                "class_nmi": shared_information(count.sum(axis=0)),
            }
        )
    return rows


def shares(routing: Arrays, kinds: Sequence[str], names: Sequence[str], experts: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per task type or class of token, sublayer (and all) and expert: its share of the tokens there.

    of: "type", over the texts' own tokens, or "class", over all texts. Classes without a token are left out.
    """
    counts = routing["counts"].astype(np.float64)
    groups = {
        ("type", kind): counts[np.array(kinds) == kind][:, :, OWN].sum(axis=(0, 2)) for kind in dict.fromkeys(kinds)
    }
    of_classes = counts.sum(axis=0)
    groups |= {("class", name): of_classes[:, c] for c, name in enumerate(CLASSES[:FILLED]) if of_classes[:, c].any()}
    rows = []
    for (of, group), table in groups.items():
        for name, row in zip([ALL, *names], [table.sum(axis=0), *table], strict=True):
            about = {"of": of, "group": group, "sublayer": name, "tokens": int(row.sum())}
            rows += [{**about, "expert": e, "share": float(x / row.sum())} for e, x in zip(experts, row, strict=True)]
    return rows
