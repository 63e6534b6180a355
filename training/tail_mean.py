"""The mean of the trained weights over a run's last steps, which is then what it scores and saves."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class TailMean:
    """Mean of `parameters` after each step from number `first` on, each step counting alike, summed in float64.

    Izmailov et al. (2018, arXiv 1803.05407, algorithm 1) average so over epochs at a constant rate. Before step `first`
    there is no mean, and all methods leave the weights as they are.
    """

    def __init__(self, parameters: Mapping[str, Tensor], first: int) -> None:
        self.parameters, self.first = parameters, first
        self.sums: dict[str, Tensor] = {}
        self.count = 0

    def add(self, step: int) -> None:
        """Take up the weights as they are after step number `step`."""
        if step < self.first:
            return
        for name, p in self.parameters.items():
            now = p.detach().to(torch.float64, copy=True)
            self.sums[name] = now + self.sums[name].to(now.device) if self.count else now
        self.count += 1

    @torch.no_grad()
    def put(self) -> None:
        """Replace the weights by their mean, rounded to their own format."""
        for name, total in self.sums.items():
            self.parameters[name].copy_(total / self.count)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Replace the weights for as long as the `with` lasts; then they are what they were, bit by bit."""
        last = {name: self.parameters[name].detach().clone() for name in self.sums}
        self.put()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, weights in last.items():
                    self.parameters[name].copy_(weights)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"sums": self.sums, "count": self.count}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self.sums, self.count = dict(state["sums"]), state["count"]
