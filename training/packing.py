"""Raw text packed end to end into sequences of one length, in an order that is a function of (seed, epoch)."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


class PackedBatches:
    """An endless stream of [batch, length] token ids; each document ends with EOS.

    The order of documents is a permutation drawn from (seed, epoch); a saved position resumes it exactly.
    """

    def __init__(self, documents: Sequence[Sequence[int]], eos: int, length: int, batch: int, seed: int) -> None:
        self.documents = [np.asarray([*d, eos], dtype=np.int32) for d in documents]
        self.length, self.batch, self.seed = length, batch, seed
        self.step = 0
        self.tokens_an_epoch = sum(map(len, self.documents))
        self.steps_an_epoch = self.tokens_an_epoch // (batch * length)

    def epoch(self, number: int) -> Tensor:
        """Return the batches of one epoch, [steps, batch, length]; the incomplete last one is left out."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.documents))
        tokens = np.concatenate([self.documents[i] for i in order])
        whole = self.steps_an_epoch * self.batch * self.length
        return torch.from_numpy(tokens[:whole].astype(np.int64)).view(-1, self.batch, self.length)

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            number, start = divmod(self.step, self.steps_an_epoch)
            for batch in self.epoch(number)[start:]:
                self.step += 1
                yield batch

    def state_dict(self) -> dict[str, Any]:
        """Position of the stream; Lightning saves it with each checkpoint."""
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue after the batch at which the state was taken."""
        self.step = state["step"]
