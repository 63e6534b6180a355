"""The contract of a pooler, and the token masks that all poolers share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from cli.limits import Limit
from poolers.shared.packed import Packed

PAD, INSTRUCTION, TEXT, ECHO, EOS, BOS, LANDMARK, PLACEHOLDER = range(8)  # the role of each token
WHICH_TOKENS = ("pool_instruction", "pool_eos", "last_real", "pool_bos")  # settings that say which tokens are read


@dataclass(frozen=True)
class TokenView:
    """All that a pooler may know of the tokens. `roles`: [B, T] of the constants above; padding may be anywhere."""

    roles: Tensor

    @property
    def real(self) -> Tensor:
        """[B, T] bool: every token that is not padding."""
        return self.roles != PAD

    def pooled(self, with_instruction: bool) -> Tensor:
        """[B, T] bool: the real tokens, without the instruction's unless asked for; an echo or landmarks alone."""
        kept = self.real & (self.roles != PLACEHOLDER)
        kept = kept if with_instruction else kept & (self.roles != INSTRUCTION)
        for alone in (self.roles == ECHO, self.roles == LANDMARK):
            kept = torch.where(alone.any(dim=1, keepdim=True), alone, kept)
        return kept

    def last(self) -> Tensor:
        """[B] index of the last real token of each text (its EOS, if it has one), whatever the padding side."""
        positions = torch.arange(self.roles.shape[1], device=self.roles.device)
        return (positions * self.real).argmax(dim=1)

    def first(self) -> Tensor:
        """[B] index of the first real token of each text (its BOS, if it has one), whatever the padding side."""
        return self.real.int().argmax(dim=1)


@dataclass(frozen=True)
class RoutedStates:
    """Reductions that a pooler of "routers" made: of the hidden states of its `layers`, and of every MoE layer."""

    hidden: list[Tensor]
    routing: list[Tensor]


States = Tensor | list[Tensor] | RoutedStates


class Pooler(nn.Module, ABC):
    """Turns hidden states into one float32 vector per text.

    A subclass says in `consumes` what the encoder shall collect for it:

    * "last": the last layer's states after the final norm, [B, T, D];
    * "layers": for each of the L layers whatever small tensor `reduce` makes of its states, a list of L tensors.
      The states themselves are dropped layer by layer, so that L x B x T x D is never kept in inference;
    * "routers": what `reduce` makes of `layers` (which may be none), and what `reduce_routing` makes of the logits of
      every MoE layer, from one forward pass, as `RoutedStates`. `experts` is then an argument of the constructor: the
      number of experts of each MoE layer, never empty.

    `embedding_dim` is E. `needs_training` is False where the pooler has no parameters to train. `layers`: which of
    the L layers are read, in order (not with "last"). `limits`: setting -> which numbers it may be; `words`: setting
    -> which words.

    pool_instruction, pool_eos, pool_bos: whether these tokens are pooled. last_real: the last token is the last real
    one; False takes the last position of the padded batch, as published code does (docs/reference-divergences.md, 9).
    reads_packed: whether `reduce` takes `Packed` states too. reads_padding: what `needs_padding` says of its settings,
    set by `build_pooler`; it decides the decoder's kernel. reduces_to: names of the vectors [B, D] that `reduce` makes
    of a layer (of two: [B, 2, D]) without any parameter, which a frozen decoder's cache keeps; () where there are some.
    """

    consumes: ClassVar[Literal["last", "layers", "routers"]] = "last"
    needs_training: ClassVar[bool] = False
    limits: ClassVar[Mapping[str, Limit]] = {}
    words: ClassVar[Mapping[str, Sequence[Any]]] = {}
    reads_padding: bool = False

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        pool_instruction: bool = False,
        pool_eos: bool = True,
        last_real: bool = True,
        *,
        pool_bos: bool = True,
    ) -> None:
        super().__init__()
        self.hidden_size, self.num_layers = hidden_size, num_layers
        self.pool_instruction, self.last_real = pool_instruction, last_real
        self.pool_eos, self.pool_bos = pool_eos, pool_bos
        self.embedding_dim = hidden_size
        self.layers: Sequence[int] = range(num_layers)
        self.reads_packed = False
        self.reduces_to: tuple[str, ...] = ()

    def pooled(self, tokens: TokenView) -> Tensor:
        """[B, T] bool: the tokens that are pooled."""
        pooled = tokens.pooled(self.pool_instruction)
        for role, kept in ((EOS, self.pool_eos), (BOS, self.pool_bos)):
            pooled = pooled if kept else pooled & (tokens.roles != role)
        return pooled

    def last_token(self, hidden: Tensor | Packed, tokens: TokenView) -> Tensor:
        """[B, D] float32 state of the last token; hidden: [B, T, D]."""
        if isinstance(hidden, Packed):
            assert self.last_real, "packed states have no last position"
            return hidden.last()
        if not self.last_real:
            return hidden[:, -1].float()
        return hidden[torch.arange(len(hidden), device=hidden.device), tokens.last()].float()

    def first_token(self, hidden: Tensor | Packed, tokens: TokenView) -> Tensor:
        """[B, D] float32 state of the first token; hidden: [B, T, D]."""
        if isinstance(hidden, Packed):
            return hidden.first()
        return hidden[torch.arange(len(hidden), device=hidden.device), tokens.first()].float()

    def one_of(self, hidden: Tensor | Packed, tokens: TokenView, which: str) -> Tensor:
        """[B, D] float32: the state of the "last" token, or else the mean over the pooled ones; hidden: [B, T, D]."""
        return self.last_token(hidden, tokens) if which == "last" else weighted_mean(hidden, self.pooled(tokens))

    def instruction_mean(self, hidden: Tensor | Packed, tokens: TokenView) -> Tensor:
        """[B, D] float32: the mean state of the instruction's tokens, zeros without one; hidden: [B, T, D]."""
        asked = tokens.roles == INSTRUCTION
        is_there = asked.any(dim=1, keepdim=True)
        return weighted_mean(hidden, torch.where(is_there, asked, tokens.real)) * is_there

    def reduce(self, layer: int, hidden: Any, tokens: TokenView) -> Tensor:
        """Shrink the states of a layer of `layers` (L-1 is the last, after the final norm); hidden: [B, T, D]."""
        raise NotImplementedError(f"{type(self).__name__} consumes '{self.consumes}' and reduces no layers.")

    def reduce_routing(self, layer: int, logits: Tensor, tokens: TokenView) -> Tensor:
        """Shrink the router's logits of MoE layer `layer` (0 is the first); logits: [B, T, experts], before top-k."""
        raise NotImplementedError(f"{type(self).__name__} consumes '{self.consumes}' and reads no routers.")

    @classmethod
    def needs_padding(cls, settings: Mapping[str, Any]) -> bool:
        """Return whether states of padding reach the vectors of a pooler with these `settings`, as in conf/pooler."""
        by_position = not settings.get("last_real", True) and cls.takes_last(settings)
        return by_position or (settings.get("tokens") == "all" and not settings.get("mask_padding", True))

    @classmethod
    def takes_last(cls, settings: Mapping[str, Any]) -> bool:
        """Return whether a pooler with these settings reads what stands at the last token."""
        return settings.get("tokens") == "last"

    @classmethod
    def takes_first(cls, settings: Mapping[str, Any]) -> bool:
        """Return whether a pooler with these settings reads the first token alone: of no use under causal attention."""
        return False

    @property
    def lacks_statistics(self) -> bool:
        """Return whether the pooler lacks statistics of a corpus (training/set_up.py) that it needs."""
        return False

    @abstractmethod
    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, E] float32. states: [B, T, D], the list of reductions of `layers`, or `RoutedStates`."""


def which_tokens(settings: dict[str, Any]) -> dict[str, bool]:
    """Take out of `settings` what says which tokens are read, the arguments of `Pooler`; the head's stay."""
    return {key: settings.pop(key) for key in WHICH_TOKENS if key in settings}


def weighted_mean(hidden: Tensor | Packed, weights: Tensor) -> Tensor:
    """[B, D] mean of hidden [B, T, D] under weights [B, T], in float32.

    A state of weight zero cannot reach it, not even a NaN. A row whose weights are all zero has no mean: NaN.
    """
    if isinstance(hidden, Packed):
        return hidden.weighted_mean(weights)
    kept = hidden.float().masked_fill((weights == 0)[..., None], 0.0)
    return torch.einsum("btd,bt->bd", kept, weights.float()) / weights.float().sum(dim=1, keepdim=True)
