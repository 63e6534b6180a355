"""Draw the examples of a step, of one data set or a mix, as a function of (seed, epoch): all cells see the same."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cli.errors import UserError
from corpora.mix import by_source, shares, sources
from corpora.triples import Triple
from encoders.templates import Template
from records.files import stream_seed

Config = dict[str, Any]


class BatchOrder:
    """The batches of every epoch. `sources`: the data set of each example; `one_source`: no batch mixes them; stream:
    names what is drawn from, so that the sources of a mix have streams of their own.

    What does not fill a batch is left out of the epoch (with `one_source`, of each source); every epoch draws again.
    never: numbers of the examples that are in no epoch, those of sources smaller than a batch with `one_source`.
    Raises `UserError` for batches larger than the data, and for `one_source` where nothing tells sources apart.
    """

    def __init__(
        self, sources: Sequence[str], batch_size: int, seed: int, one_source: bool, stream: str = "data"
    ) -> None:
        self.stream = stream
        self.sources, self.batch_size, self.seed, self.one_source = sources, batch_size, seed, one_source
        if one_source and len(set(sources)) == 1:
            raise UserError(
                f"data.one_source=true, but all {len(sources)} examples say the same source ({sources[0]}). Give each "
                "record a source (data.columns.source=<column>), or set data.one_source=false."
            )
        count = Counter(sources)
        self.epoch = lru_cache(maxsize=2)(self._epoch)
        self.never = [i for i, source in enumerate(sources) if one_source and count[source] < batch_size]
        self.steps_per_epoch = len(self.epoch(0))  # each example once, but for what fills no batch
        if not self.steps_per_epoch:
            of, held = ("any one source", max(count.values())) if one_source else (stream, len(sources))
            fault = f"trainer.global_batch_size={batch_size} is more than {of} holds ({held})"
            raise UserError(f"{fault}. Lower it, or give more data.")

    def _epoch(self, number: int) -> np.ndarray:
        """Return [batches, batch_size] example numbers of one epoch."""
        random = np.random.default_rng([stream_seed(self.seed, self.stream), number])
        groups: dict[str, list[int]] = defaultdict(list)
        for i, source in enumerate(self.sources):
            groups[source if self.one_source else ""].append(i)
        batches = []
        for _, examples in sorted(groups.items()):
            whole = len(examples) // self.batch_size * self.batch_size
            batches.append(random.permutation(examples)[:whole].reshape(-1, self.batch_size))
        return random.permutation(np.concatenate(batches))

    def batch(self, step: int) -> list[int]:
        """Return the example numbers of step `step`, counted from zero over all epochs."""
        number, place = divmod(step, self.steps_per_epoch)
        return [int(i) for i in self.epoch(number)[place]]


def query_side(triple: Triple, instruction: str | None, template: Template) -> str:
    """Return what the tokenizer is given for the query of `triple`; its own instruction goes before the data set's."""
    return template.asked(triple.instruction or instruction or "", "query")


def same_label(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> Tensor:
    """Return [N, M] bool: whether a text of the first and one of the second, each as its labels, have one in common."""
    number = {label: k for k, label in enumerate(dict.fromkeys(x for labels in (*first, *second) for x in labels))}
    has = torch.zeros(len(first) + len(second), len(number))
    for i, labels in enumerate((*first, *second)):
        has[i, [number[label] for label in labels]] = 1
    return has[: len(first)] @ has[len(first) :].T > 0


def roll(previous: str, step: int, batch: Sequence[int]) -> str:
    """Rolling sha256 of the batches consumed: two runs with the same value saw the same examples in the same order."""
    return hashlib.sha256(f"{previous}|{step}:{','.join(map(str, batch))}".encode()).hexdigest()


class MixOrder:
    """The batches of a mix. of: source -> its order, whose batches are the turns of the source; members: source -> the
    numbers of its examples; turns: how many make a batch (1: each batch is of one source).

    The next turn is that of the source that is furthest behind its share. Turns depend on the shares alone, and what a
    source gives in its turns on the seed and its name: all designs see the same, and runs of other shares see
    more or less of the same streams.
    """

    def __init__(
        self, share: Mapping[str, float], of: Mapping[str, BatchOrder], members: Mapping[str, Sequence[int]], turns: int
    ) -> None:
        self.share, self.of, self.members, self.turns = share, of, members, turns
        self.never = [members[name][i] for name, order in of.items() for i in order.never]
        self._sequence: list[tuple[str, int]] = []  # the source of each turn, and how many turns it had before
        self._taken = dict.fromkeys(of, 0)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which the source that is used up first is seen once."""
        return max(
            1, min(int(order.steps_per_epoch / self.share[name] / self.turns) for name, order in self.of.items())
        )

    def batch(self, step: int) -> list[int]:
        """Return the example numbers of step `step`, counted from zero."""
        while len(self._sequence) < (step + 1) * self.turns:
            n = len(self._sequence) + 1
            name = max(self.of, key=lambda source: self.share[source] * n - self._taken[source])  # of equals the first
            self._sequence.append((name, self._taken[name]))
            self._taken[name] += 1
        turns = self._sequence[step * self.turns : (step + 1) * self.turns]
        return [self.members[name][i] for name, turn in turns for i in self.of[name].batch(turn)]


def order_of(config: Config, examples: Sequence[Triple]) -> BatchOrder | MixOrder:
    """Return the order of the batches of a run. Raises `UserError` for batches larger than the data or a source."""
    data, size, seed = config["data"], config["trainer"]["global_batch_size"], config["seed"]
    if "mix" not in data:
        return BatchOrder([example.source for example in examples], size, seed, data["one_source"])
    share = {name: part for name, part in shares(data).items() if part}
    members, configs, at_a_time = by_source(examples), sources(data), size if data["one_source"] else 1
    of = {}
    for name in share:
        inner = [examples[i].source for i in members[name]]
        of[name] = BatchOrder(inner, at_a_time, seed, configs[name]["one_source"], stream=f"data.sources.{name}")
    return MixOrder(share, of, members, size // at_a_time)
