"""Multi-layer trainable pooling: trainable queries attend to one vector of each layer, plus trainable layer weights."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from cli.errors import UserError
from cli.limits import Limit
from poolers.shared.base import Pooler, States, TokenView, which_tokens
from poolers.shared.cross_attention import LIMITS, ONE_KEY, TOKENS, WORDS, CrossAttentionHead, sized
from poolers.shared.packed import Packed


class MultiLayerTrainable(Pooler):
    """Models 3 (causal) and 5 (bidirectional) of arXiv 2409.02727: keys and values from H + W, H and W in R^{l x d}.

    tokens: a layer's vector is its "last" token's state (the paper, causal) or the "mean" (the paper,
    bidirectional); "all": every token of every layer is a key, attended layer by layer.
    layer_weights: whether W is there, drawn from N(0, layer_weights_std^2). layers: "all", "last:k" or "every:k"
    (the last layer and every k-th before it). mask_padding: see `LastLayerTrainable`; of use with tokens="all".
    head: sizes and start of the head, head.* of conf/ and `sized`. query="instruction": the keys of a layer
    are asked by queries that this layer's states of the instruction moved.
    """

    consumes: ClassVar[Literal["last", "layers", "routers"]] = "layers"
    needs_training: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = LIMITS
    words: ClassVar[Mapping[str, Sequence[Any]]] = {**WORDS, "tokens": TOKENS}

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        *,
        tokens: str,
        layer_weights: bool = True,
        layer_weights_std: float = 0.02,
        layers: str = "all",
        mask_padding: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(hidden_size, num_layers, **which_tokens(settings))
        self.tokens, self.mask_padding, self.layers = tokens, mask_padding, chosen_layers(layers, num_layers)
        self.reads_packed = tokens == "mean" or (tokens == "last" and self.last_real)
        extra = len(self.layers) * hidden_size if layer_weights else 0
        self.head = CrossAttentionHead(hidden_size, **sized(hidden_size, settings, extra))
        if self.head.of_instruction and tokens != "all" and len(self.layers) == 1:
            raise UserError(f"pooler.tokens={tokens} of one layer is one key, {ONE_KEY}")
        one = "last" if tokens == "last" else f"mean {self.pool_instruction} {self.pool_eos} {self.pool_bos}"
        self.reduces_to = () if tokens == "all" else (one, *["instruction"] * bool(self.head.of_instruction))
        apart = torch.Generator().manual_seed((torch.initial_seed() + 1) % 2**63)  # neither moves the other's start
        weights = torch.randn(len(self.layers), hidden_size, generator=apart, device="cpu") * layer_weights_std
        self.layer_weights = nn.Parameter(weights.to(self.head.queries.device)) if layer_weights else None

    def reduce(self, layer: int, hidden: Tensor | Packed, tokens: TokenView) -> Tensor:
        """One vector per text, [B, D]; for tokens="all" the layer's partial attention, [B, H, N, d + 1].

        With query="instruction" there are two: the second is the mean state of the instruction's tokens, [B, 2, D].
        """
        asked = self.instruction_mean(hidden, tokens) if self.head.of_instruction else None
        if self.tokens != "all":
            one = self.one_of(hidden, tokens, self.tokens)
            return one if asked is None else torch.stack([one, asked], dim=1)
        assert isinstance(hidden, Tensor)
        states = hidden.float()
        if self.layer_weights is not None:
            states = states + self.layer_weights[self.layers.index(layer)]
        mask = self.pooled(tokens) if self.mask_padding else None
        return torch.cat(self.head.partial(states, mask, None if asked is None else asked[:, None]), dim=-1)

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]; states: the reductions of `layers`."""
        assert isinstance(states, list)
        if self.tokens == "all":
            parts = [s[..., :-1] for s in states]
            return self.head.finish(self.head.merge(parts, [s[..., -1:] for s in states]))
        keys, asked = self.keys(torch.stack(states, dim=1))
        return self.head(keys, asked=asked)

    def keys(self, stacked: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return (keys [B, L, D], instruction's means [B, L, D] or None) of what `reduce` made, not of tokens="all"."""
        states, asked = stacked.unbind(dim=2) if self.head.of_instruction else (stacked, None)
        return (states if self.layer_weights is None else states + self.layer_weights), asked


def chosen_layers(layers: str, count: int) -> list[int]:
    """Return the numbers of the layers that "all", "last:k" or "every:k" names, of `count`, in order."""
    kind, _, number = str(layers).partition(":")
    k = int(number) if number.isdecimal() else 0
    if layers == "all":
        return list(range(count))
    if kind not in ("last", "every") or not 1 <= k <= count:
        raise UserError(f"pooler.layers is '{layers}'; it must be all, last:k or every:k with k from 1 to {count}.")
    return list(range(count - k, count)) if kind == "last" else list(range(count - 1, -1, -k))[::-1]
