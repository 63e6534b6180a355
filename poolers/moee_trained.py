"""A trained head over routing weights, alone or joined to the layers' states: what MoEE's variant adds to training."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from cli.limits import Limit
from poolers.shared.base import Pooler, RoutedStates, States, TokenView, which_tokens
from poolers.shared.cross_attention import LIMITS, WORDS, CrossAttentionHead, sized


class MoEETrained(Pooler):
    """The head of `multilayer` with one more key per MoE layer: its routing weights, mapped to D by a trainable matrix.

    variant: "joined" (a vector of each layer, then of each router) or "routing" (the routers alone). tokens: whether
    a key is the "last" token's or the "mean". Each key has a trainable offset, from N(0, layer_weights_std^2). Routing
    weights enter as N_l p - 1, so that an even use of the experts is zero. head: head.* of conf/ and `sized`.
    """

    consumes: ClassVar[Literal["last", "layers", "routers"]] = "routers"
    needs_training: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = LIMITS
    words: ClassVar[Mapping[str, Sequence[Any]]] = {
        **WORDS,
        "variant": ("joined", "routing"),
        "tokens": ("last", "mean"),
    }

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        *,
        experts: Sequence[int],
        variant: str,
        tokens: str,
        layer_weights_std: float = 0.02,
        **settings: Any,
    ) -> None:
        super().__init__(hidden_size, num_layers, **which_tokens(settings))
        self.tokens = tokens
        self.layers = range(num_layers) if variant == "joined" else []
        keys = len(self.layers) + len(experts)
        self.head = CrossAttentionHead(hidden_size, **sized(hidden_size, settings, (keys + sum(experts)) * hidden_size))
        self.enter = nn.ModuleList(nn.Linear(n, hidden_size, bias=False) for n in experts)
        self.offsets = nn.Parameter(torch.randn(keys, hidden_size) * layer_weights_std)

    def reduce(self, layer: int, hidden: Tensor, tokens: TokenView) -> Tensor:
        """[B, D] of one layer."""
        return self.one_of(hidden, tokens, self.tokens)

    def reduce_routing(self, layer: int, logits: Tensor, tokens: TokenView) -> Tensor:
        """[B, experts] of one MoE layer."""
        return self.one_of(logits.float().softmax(dim=-1), tokens, self.tokens)

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, RoutedStates)
        routing = [enter(p.shape[1] * p - 1) for enter, p in zip(self.enter, states.routing, strict=True)]
        return self.head(torch.stack([*states.hidden, *routing], dim=1) + self.offsets)
