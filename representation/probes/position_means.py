"""Means by position in a text: bins of positions, a mean over each text's tokens in a bin, then a mean over texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def bin_starts(longest: int) -> list[int]:
    """First position of each bin: 0, 1, 2, 4, 8, ... below `longest`, the tokens of the longest text."""
    starts = [0]
    while (following := max(1, 2 * starts[-1])) < longest:
        starts.append(following)
    return starts


def bin_names(starts: list[int], longest: int) -> list[str]:
    """Positions of each bin that a text of `longest` tokens reaches, from 0: "0", "1", "2-3"; the last ends with it."""
    starts = [start for start in starts if start < longest]
    ends = [*(start - 1 for start in starts[1:]), longest - 1]
    return [str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True)]


@dataclass
class PositionMeans:
    """Sums [L, bins] of each text's mean in a bin, and how many texts [bins] and tokens [bins] have reached it.

    longest: tokens of the longest text seen.
    """

    starts: list[int]
    sums: Tensor
    texts: Tensor
    tokens: Tensor
    of_texts: Tensor  # [L] sums of each text's mean over all its tokens
    longest: int = 0

    @staticmethod
    def empty(layers: int, starts: list[int]) -> "PositionMeans":
        """Nothing seen yet."""
        bins = len(starts)
        return PositionMeans(
            starts,
            torch.zeros(layers, bins, dtype=torch.float64),
            torch.zeros(bins, dtype=torch.long),
            torch.zeros(bins, dtype=torch.long),
            torch.zeros(layers, dtype=torch.float64),
        )

    @staticmethod
    def over_seeds(found: Sequence["PositionMeans"]) -> "PositionMeans":
        """The mean over encoders that have read the same texts."""
        first = found[0]
        sums, whole = (torch.stack([getattr(f, key) for f in found]).mean(dim=0) for key in ("sums", "of_texts"))
        return PositionMeans(first.starts, sums, first.texts, first.tokens, whole, first.longest)

    def add(self, values: Tensor, positions: Tensor, real: Tensor) -> None:
        """Take values [L, B, T] of the tokens at positions [B, T]; real: [B, T] bool, the tokens that count."""
        ends = torch.tensor([*self.starts[1:], torch.iinfo(torch.long).max], device=positions.device)
        place = torch.bucketize(positions, ends, right=True)
        member = torch.nn.functional.one_hot(place, len(self.starts)).double() * real[..., None]  # [B, T, bins]
        count = member.sum(dim=1)  # [B, bins]
        kept = values.double().masked_fill(~real, 0.0)
        means = torch.einsum("lbt,btn->lbn", kept, member) / count.clamp(min=1)
        self.sums += means.sum(dim=1).cpu()
        self.of_texts += (kept.sum(dim=-1) / real.sum(dim=1)).sum(dim=1).cpu()
        self.texts += (count > 0).sum(dim=0).cpu()
        self.tokens += count.sum(dim=0).long().cpu()
        self.longest = max(self.longest, int(real.sum(dim=1).max()))

    @property
    def means(self) -> Tensor:
        """[L, bins] float64: the mean over the texts that reach a bin; nan where none does."""
        return self.sums / torch.where(self.texts > 0, self.texts.double(), torch.nan)

    @property
    def whole(self) -> Tensor:
        """[L] float64: the mean over all texts of each text's mean over all its tokens."""
        return self.of_texts / self.texts[0]
