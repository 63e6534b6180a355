"""States of real tokens alone, text after text, with the reductions that a pooler may ask of them."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packed:
    """states: [N, D] of the real tokens of B texts, in order. places: [N] of them in a padded [B * T]; shape: (B, T).

    What a decoder without padding has (encoders/attention/switch.py): padding it would cost more than any of them.
    """

    states: Tensor
    places: Tensor
    shape: tuple[int, int]

    @property
    def owner(self) -> Tensor:
        """[N] number of each token's text, rising."""
        return self.places // self.shape[1]

    def weighted_mean(self, weights: Tensor) -> Tensor:
        """[B, D] float32 mean under weights [B, T] of the tokens, as `poolers.shared.base.weighted_mean` has it."""
        of_tokens = weights.flatten()[self.places].float()[:, None]
        kept = self.states.float().masked_fill(of_tokens == 0, 0.0)
        empty = self.states.new_zeros(self.shape[0], self.states.shape[1], dtype=torch.float32)
        sums = empty.index_add(0, self.owner, kept * of_tokens)
        return sums / weights.float().sum(dim=1, keepdim=True)

    def first(self) -> Tensor:
        """[B, D] float32 state of each text's first token."""
        texts = torch.arange(self.shape[0], device=self.places.device)  # `bincount` would wait for the GPU
        return self.states[torch.searchsorted(self.owner, texts)].float()

    def last(self) -> Tensor:
        """[B, D] float32 state of each text's last token."""
        texts = torch.arange(self.shape[0], device=self.places.device)
        return self.states[torch.searchsorted(self.owner, texts, right=True) - 1].float()
