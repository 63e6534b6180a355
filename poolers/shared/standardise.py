"""Standardisation of vectors by means and standard deviations of a corpus that are stored with the run."""

import torch
from torch import Tensor, nn

STANDARDISATIONS = ("none", "corpus", "batch")


class Standardise(nn.Module):
    """(x - mean) / standard deviation, entry by entry.

    kind: "none" leaves x as it is. "corpus" takes what `fit` was given: buffers, saved and loaded with the head.
    "batch" takes the batch's own, as the published code of MoEE does, so that a vector depends on its batch mates
    (docs/reference-divergences.md, M1); a text alone becomes zeros, as there.
    """

    mean: Tensor
    std: Tensor
    texts: Tensor  # how many texts the statistics are over; 0 before `fit`

    def __init__(self, width: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        if kind == "corpus":
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("std", torch.ones(width))
            self.register_buffer("texts", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        """x: [B, width] float32; the same shape comes back."""
        if self.kind == "corpus":
            return (x - self.mean) / self.std
        if self.kind == "batch":
            return (x - x.mean(dim=0)) / (x.std(dim=0) + 1e-8) if len(x) > 1 else torch.zeros_like(x)
        return x

    def fit(self, x: Tensor) -> None:
        """Take mean and deviation (n - 1; one where nothing varies) of x: [texts, width], at least two texts."""
        double = x.double()
        std = double.std(dim=0)
        self.mean.copy_(double.mean(dim=0))
        self.std.copy_(std.where(std > 1e-12, 1.0))
        self.texts.fill_(len(x))

    @property
    def lacks_statistics(self) -> bool:
        """Return whether corpus statistics are wanted and not there."""
        return self.kind == "corpus" and int(self.texts) == 0
