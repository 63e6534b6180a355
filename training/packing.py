"""Raw text packed end to end into sequences of one length: for `clm`, and as blocks for `mntp`."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from encoders.tokens import TextTokenizer, Tokens
from poolers.base import BOS, TEXT
from records.errors import UserError

TOKENIZED = 1000  # texts at a time


class PackedBatches:
    """Batches of [batch, length] token ids; each document ends with EOS, and documents follow one another.

    The order of documents is a permutation drawn from (seed, epoch); which batch a step sees is decided by the
    step's number alone, so a resumed run sees what it would have seen.
    """

    def __init__(self, documents: Sequence[Sequence[int]], eos: int, length: int, batch: int, seed: int) -> None:
        self.documents = [np.asarray([*d, eos], dtype=np.int32) for d in documents]
        self.length, self.size, self.seed = length, batch, seed
        self.tokens_an_epoch = sum(map(len, self.documents))
        self.steps_an_epoch = self.tokens_an_epoch // (batch * length)
        if not self.steps_an_epoch:
            raise UserError(
                f"The text has {self.tokens_an_epoch:,} tokens, and a step takes objective.batch={batch} sequences of "
                f"objective.sequence_length={length}. Lower one of them."
            )

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
    ids, roles = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int8)
    start = [] if tokenizer.bos is None else [tokenizer.bos]
    pieces: list[np.ndarray] = []
    for k in range(0, len(texts), TOKENIZED):
        pieces += [np.array([*start, *row], dtype=np.int32) for row in tokenizer.plain_ids(texts[k : k + TOKENIZED])]
    if pieces:
        ids = np.concatenate(pieces)
        roles = np.full(len(ids), TEXT, dtype=np.int8)
        if start:
            roles[np.cumsum([0, *map(len, pieces[:-1])])] = BOS
    length = tokenizer.max_length
    whole = range(0, len(ids) - length + 1, length)
    if not whole:
        raise UserError(
            f"objective.packed=true needs {length} tokens for a block, and the texts have {len(ids):,}. "
            "Lower max_length, give more text, or set objective.packed=false."
        )
    return [Tokens(ids[i : i + length].tolist(), roles[i : i + length].tolist()) for i in whole]
