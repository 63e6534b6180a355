"""MoEE: the routing weights of a mixture of experts as an embedding, alone or with the hidden state."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from cli.limits import Limit, real
from poolers.shared.base import Pooler, RoutedStates, States, TokenView
from poolers.shared.standardise import STANDARDISATIONS, Standardise

WORDS: Mapping[str, Sequence[Any]] = {
    "variant": ("hidden", "routing", "concat", "sum"),
    "hidden_tokens": ("last", "mean"),
    "routing_tokens": ("last", "mean"),
    "hidden_layers": ("last", "all", "mean"),
    "routing_weights": ("softmax", "logits"),
    "standardise": STANDARDISATIONS,
}


class MoEE(Pooler):
    """Li and Zhou, arXiv 2410.10814, from one forward pass. No parameters to train.

    variant: "hidden" (HS), "routing" (RW), "concat" [HS; RW], or "sum": cos(HS) + alpha cos(RW) of two texts. The sum
    is the inner product of [HS / |HS|; sqrt(alpha) RW / |RW|], whose norm is constant, so it is one vector here and its
    cosine is the sum over 1 + alpha.
    HS: the last layer's state after the final norm; or of every layer's the concatenation or, as in the paper's
    ablation (section 4.3), the mean (`hidden_layers`: last, all, mean).
    RW: softmax over all experts of every MoE layer, before top-k, concatenated: sum of N_l entries. routing_weights:
    "softmax", or "logits" as the published code does for OLMoE and Qwen (docs/reference-divergences.md, M2).
    hidden_tokens, routing_tokens: the "last" token's, or the "mean" over all pooled tokens.
    standardise: see `Standardise`; HS and RW apart. "hidden" alone is never standardised by batch, as in that code.
    statistics: a head.safetensors with corpus statistics to start from, that of a run.
    """

    consumes: ClassVar[Literal["last", "layers", "routers"]] = "routers"
    limits: ClassVar[Mapping[str, Limit]] = {"alpha": real(0), "standardise_texts": Limit(2)}
    words: ClassVar[Mapping[str, Sequence[Any]]] = WORDS

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        *,
        experts: Sequence[int],
        variant: str,
        alpha: float,
        hidden_tokens: str,
        hidden_layers: str,
        routing_tokens: str,
        routing_weights: str,
        standardise: str,
        standardise_texts: int = 0,
        statistics: str | None = None,
        **tokens: Any,
    ) -> None:
        super().__init__(hidden_size, num_layers, **tokens)
        self.variant, self.alpha, self.hidden_layers = variant, float(alpha), hidden_layers
        self.hidden_tokens, self.routing_tokens, self.routing_weights = hidden_tokens, routing_tokens, routing_weights
        self.layers = [num_layers - 1] if hidden_layers == "last" else range(num_layers)
        if variant == "routing":
            self.layers = []
        kept = min(1, len(self.layers)) if hidden_layers == "mean" else len(self.layers)
        widths = kept * hidden_size, 0 if variant == "hidden" else sum(experts)
        self.embedding_dim = sum(widths)
        by_batch = variant == "hidden" and standardise == "batch"
        self.of_hidden = Standardise(widths[0], "none" if by_batch or not widths[0] else standardise)
        self.of_routing = Standardise(widths[1], standardise if widths[1] else "none")
        if statistics:
            self._take(Path(statistics))

    @classmethod
    def takes_last(cls, settings: Mapping[str, Any]) -> bool:
        """Of the hidden states, or of the routing weights, where they are read."""
        unread = {"hidden": "routing_tokens", "routing": "hidden_tokens"}.get(settings["variant"])
        return any(settings[key] == "last" for key in ("hidden_tokens", "routing_tokens") if key != unread)

    def reduce(self, layer: int, hidden: Tensor, tokens: TokenView) -> Tensor:
        """[B, D] of one layer."""
        return self.one_of(hidden, tokens, self.hidden_tokens)

    def reduce_routing(self, layer: int, logits: Tensor, tokens: TokenView) -> Tensor:
        """[B, experts] of one MoE layer."""
        weights = logits.float().softmax(dim=-1) if self.routing_weights == "softmax" else logits.float()
        return self.one_of(weights, tokens, self.routing_tokens)

    def parts(self, states: States) -> tuple[Tensor | None, Tensor | None]:
        """HS [B, layers * D] or [B, D], RW [B, sum N_l], before standardisation; None where they are not read."""
        assert isinstance(states, RoutedStates)
        hidden = None
        if states.hidden:
            averaged = self.hidden_layers == "mean"
            hidden = torch.stack(states.hidden).mean(dim=0) if averaged else torch.cat(states.hidden, dim=1)
        return hidden, None if self.variant == "hidden" else torch.cat(states.routing, dim=1)

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, E], E = layers * D (D of their mean), sum N_l, or both together."""
        hidden, routing = self.parts(states)
        parts = [standard(x) for standard, x in ((self.of_hidden, hidden), (self.of_routing, routing)) if x is not None]
        if self.variant == "sum":
            parts = [F.normalize(parts[0], dim=-1), self.alpha**0.5 * F.normalize(parts[1], dim=-1)]
        return torch.cat(parts, dim=1)

    def fit(self, parts: Sequence[tuple[Tensor | None, Tensor | None]]) -> None:
        """Take the statistics of a corpus from what `parts` gave for its batches."""
        for standard, of_batches in zip((self.of_hidden, self.of_routing), zip(*parts, strict=True), strict=True):
            if standard.kind == "corpus":
                standard.fit(torch.cat([x for x in of_batches if x is not None]))

    @property
    def lacks_statistics(self) -> bool:
        """Return whether corpus statistics are wanted and not there."""
        return self.of_hidden.lacks_statistics or self.of_routing.lacks_statistics

    def _take(self, file: Path) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            self.load_state_dict(load_file(file))
        except (OSError, RuntimeError, SafetensorError) as error:
            raise UserError(
                f"pooler.statistics={file} cannot be read, or was made for another variant: "
                f"{str(error).splitlines()[0]}. Make it again: train.py trainer.max_steps=0."
            ) from error
