"""Which examples make step s: a function of (seed, epoch) and nothing else, so all cells see the same batches."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from records.errors import UserError
from records.streams import stream_seed


class BatchOrder:
    """The batches of every epoch. `sources`: the data set of each example; `one_source`: no batch mixes them.

    What does not fill a batch is left out of the epoch (with `one_source`, of each source); every epoch draws anew.
    Raises `UserError` for batches larger than the data, and for `one_source` where nothing tells sources apart.
    """

    def __init__(self, sources: Sequence[str], batch_size: int, seed: int, one_source: bool) -> None:
        self.sources, self.batch_size, self.seed, self.one_source = sources, batch_size, seed, one_source
        if one_source and len(set(sources)) == 1:
            raise UserError(
                f"data.one_source=true, but all {len(sources)} examples say the same source ({sources[0]}), so batches "
                "would mix whatever they come from. Give each record a source (data.columns.source=<column>), name "
                "a file for each source, or set data.one_source=false."
            )
        if not len(self.epoch(0)):
            of = "any one source" if one_source else "the data"
            raise UserError(
                f"trainer.global_batch_size={batch_size} is more than {of} holds "
                f"({len(sources)} examples in all). Lower it."
            )

    @lru_cache(maxsize=2)  # noqa: B019  (one order lives as long as its run)
    def epoch(self, number: int) -> np.ndarray:
        """Return [batches, batch_size] example numbers of one epoch."""
        random = np.random.default_rng([stream_seed(self.seed, "data"), number])
        groups: dict[str, list[int]] = defaultdict(list)
        for i, source in enumerate(self.sources):
            groups[source if self.one_source else ""].append(i)
        batches = []
        for name in sorted(groups):
            shuffled = random.permutation(groups[name])
            whole = len(shuffled) // self.batch_size * self.batch_size
            batches.append(shuffled[:whole].reshape(-1, self.batch_size))
        return random.permutation(np.concatenate(batches))

    def batch(self, step: int) -> list[int]:
        """Return the example numbers of step `step`, counted from zero over all epochs."""
        number, place = divmod(step, len(self.epoch(0)))
        return [int(i) for i in self.epoch(number)[place]]


def roll(previous: str, step: int, batch: Sequence[int]) -> str:
    """Rolling sha256 of the batches consumed: two runs with the same value saw the same examples in the same order."""
    return hashlib.sha256(f"{previous}|{step}:{','.join(map(str, batch))}".encode()).hexdigest()
