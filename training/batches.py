"""Draw the examples of a step as a function of (seed, epoch) and nothing else, so all cells see the same batches."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from cli.errors import UserError
from corpora.triples import Triple
from encoders.templates import Template
from encoders.tokens import TextTokenizer, Tokens
from poolers.shared.base import BOS, TEXT
from records.fingerprint import stream_seed


class BatchOrder:
    """The batches of every epoch. `sources`: the data set of each example; `one_source`: no batch mixes them; stream:
    names what is drawn from, so that the sources of a mix have streams of their own.

    What does not fill a batch is left out of the epoch (with `one_source`, of each source); every epoch draws again.
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
        if not len(self.epoch(0)):
            of = "any one source" if one_source else stream
            raise UserError(
                f"trainer.global_batch_size={batch_size} is more than {of} holds ({len(sources)}). Lower it."
            )

    @lru_cache(maxsize=2)  # noqa: B019  (one order lives as long as its run)
    def epoch(self, number: int) -> np.ndarray:
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

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which each example is seen once, but for what fills no batch."""
        return len(self.epoch(0))

    def batch(self, step: int) -> list[int]:
        """Return the example numbers of step `step`, counted from zero over all epochs."""
        number, place = divmod(step, self.steps_per_epoch)
        return [int(i) for i in self.epoch(number)[place]]


def query_side(triple: Triple, instruction: str | None, template: Template) -> str:
    """Return what the tokenizer is given for the query of `triple`; its own instruction goes before the data set's."""
    return template.asked(triple.instruction or instruction or "", "query")


def roll(previous: str, step: int, batch: Sequence[int]) -> str:
    """Rolling sha256 of the batches consumed: two runs with the same value saw the same examples in the same order."""
    return hashlib.sha256(f"{previous}|{step}:{','.join(map(str, batch))}".encode()).hexdigest()


TOKENIZED = 1000  # texts at a time


class PackedBatches:
    """Batches of [batch, length] token ids; each document ends with EOS, and documents follow one another.

    Their order is a permutation drawn from (seed, epoch); the step's number alone decides which batch it sees.
    """

    def __init__(self, documents: Sequence[Sequence[int]], eos: int, length: int, batch: int, seed: int) -> None:
        self.documents = [np.asarray([*d, eos], dtype=np.int32) for d in documents]
        self.length, self.size, self.seed = length, batch, seed
        self.tokens_an_epoch = sum(map(len, self.documents))
        self.steps_an_epoch = self.tokens_an_epoch // (batch * length)
        if not self.steps_an_epoch:
            raise UserError(f"The text has {self.tokens_an_epoch:,} tokens; a step takes {batch * length:,}.")

    @lru_cache(maxsize=1)  # noqa: B019  (one object a run)
    def epoch(self, number: int) -> Tensor:
        """Return the batches of one epoch, [steps, batch, length]; the incomplete last one is left out."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.documents))
        tokens = np.concatenate([self.documents[i] for i in order])
        whole = self.steps_an_epoch * self.size * self.length
        return torch.from_numpy(tokens[:whole].astype(np.int64)).view(-1, self.size, self.length)

    def batch(self, step: int) -> Tensor:
        """Return the [batch, length] ids of step `step`, counted from zero over all epochs."""
        number, place = divmod(step, self.steps_an_epoch)
        return self.epoch(number)[place]


def blocks(texts: Sequence[str], tokenizer: TextTokenizer) -> list[Tokens]:
    """Return `texts` end to end, each begun by BOS where the tokenizer puts one, cut into blocks of `max_length`.

    As the published code of LLM2Vec lays out its raw text: a block is one sequence to the decoder, so that texts see
    one another in it; what does not fill the last block is left out.
    """
    start = [] if tokenizer.bos is None else [tokenizer.bos]
    pieces: list[np.ndarray] = []
    for k in range(0, len(texts), TOKENIZED):
        pieces += [np.array([*start, *row], dtype=np.int32) for row in tokenizer.plain_ids(texts[k : k + TOKENIZED])]
    ids = np.concatenate([np.empty(0, dtype=np.int32), *pieces])
    roles = np.full(len(ids), TEXT, dtype=np.int8)
    if start and pieces:
        roles[np.cumsum([0, *map(len, pieces[:-1])])] = BOS
    length = tokenizer.max_length
    whole = range(0, len(ids) - length + 1, length)
    if not whole:
        raise UserError(f"objective.packed=true needs {length} tokens for a block, and the texts have {len(ids):,}.")
    return [Tokens(ids[i : i + length].tolist(), roles[i : i + length].tolist()) for i in whole]
