"""Last-layer trainable pooling: trainable queries attend to the last layer's token states."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from cli.errors import UserError
from cli.limits import Limit
from poolers.shared.base import Pooler, States, TokenView, which_tokens
from poolers.shared.cross_attention import LIMITS, ONE_KEY, TOKENS, WORDS, CrossAttentionHead, sized


class LastLayerTrainable(Pooler):
    """Models 2 (causal) and 4 (bidirectional) of arXiv 2409.02727, with padding masked out of the keys.

    tokens: what the head reads: "all" token states (the paper), or one key: the "last" token's state or the "mean".
    mask_padding: False lets the head attend to padding, so that vectors depend on batch mates, as in the published
    code (docs/reference-divergences.md, 7). head: sizes and start of the head, head.* of conf/ and `sized`.
    """

    needs_training: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = LIMITS
    words: ClassVar[Mapping[str, Sequence[Any]]] = {**WORDS, "tokens": TOKENS}

    def __init__(
        self, hidden_size: int, num_layers: int, *, tokens: str, mask_padding: bool = True, **settings: Any
    ) -> None:
        super().__init__(hidden_size, num_layers, **which_tokens(settings))
        self.tokens, self.mask_padding = tokens, mask_padding
        self.head = CrossAttentionHead(hidden_size, **sized(hidden_size, settings))
        if self.head.of_instruction and tokens != "all":
            raise UserError(f"pooler.tokens={tokens} is one key, {ONE_KEY}")

    def asked(self, states: Tensor, tokens: TokenView) -> Tensor | None:
        """[B, 1, D]: what `CrossAttentionHead.forward` takes of the instruction; None with query="fixed"."""
        return self.instruction_mean(states, tokens)[:, None] if self.head.of_instruction else None

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        if self.tokens == "all":
            return self.head(states, self.pooled(tokens) if self.mask_padding else None, self.asked(states, tokens))
        return self.head(self.one_of(states, tokens, self.tokens)[:, None])
