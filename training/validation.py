"""Scores of held-out examples while a run goes on, nDCG@10 of held-out triples."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch

from corpora.triples import Triple
from encoders.text_encoder import TextEncoder, refuse_nonfinite
from encoders.tokens import Tokens, by_instruction
from training.batches import query_side, same_label
from training.large_batch import TRY

SHOWN = 3  # held-out scores on the screen; all are in the manifest


class HeldOut(pl.Callback):
    """Score held-out examples every `every` steps (0: only at the end), and keep the last scores."""

    def __init__(self, score: Callable[[], dict[str, float]], every: int) -> None:
        self.score, self.every = score, every
        self.last: dict[str, float] = {}

    def on_train_batch_end(self, trainer: pl.Trainer, module: pl.LightningModule, *_: Any) -> None:
        """Score when the step has come."""
        step = trainer.global_step
        if step == trainer.max_steps or (self.every and step % self.every == 0):
            self.last = self.score()
            for number, (name, score) in enumerate(self.last.items()):
                module.log(f"held-out {name}", score, prog_bar=number < SHOWN, batch_size=1)

    def complete(self) -> None:
        """Score where no step was left, since an earlier attempt took the last one."""
        self.last = self.last or self.score()


def ndcg_at_10(
    queries: np.ndarray, documents: np.ndarray, relevant: Sequence[int], left_out: np.ndarray | None = None
) -> float:
    """Mean nDCG@10 of cosine ranking where query i has the one relevant document `relevant[i]`.

    queries: [Q, E]; documents: [K, E]. With one relevant document nDCG is 1 / log2(1 + rank), zero after rank 10.
    A tie counts against the query; a vector of zeros has a cosine of 0 with all. Vectors must be finite. left_out:
    [Q, K] bool, documents that are not ranked for a query.
    """
    scores = _unit(queries) @ _unit(documents).T
    if left_out is not None:
        scores[left_out] = -np.inf
    right = scores[np.arange(len(queries)), relevant]
    ranks = (scores >= right[:, None]).sum(axis=1)
    return float(np.mean([1 / math.log2(1 + r) if r <= 10 else 0.0 for r in ranks]))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(vectors.dtype).tiny)


def encoded(encoder: TextEncoder, texts: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return [N, E] float32 of (instruction, text) pairs, each instruction's together."""
    vectors = np.empty((len(texts), encoder.embedding_dim), dtype=np.float32)
    for instruction, places in by_instruction(texts).items():
        vectors[places] = encoder.encode([texts[i][1] for i in places], instruction)
    return vectors


class Validation:
    """nDCG@10 of the queries of held-out triples among all their positives and first hard negatives. Other positives of
    the same query are not ranked, nor are, of class data, other documents with a label of it: neither is wrong.

    queries: (instruction, text) pairs, as in training. documents: distinct texts; of_document: their instruction.
    run: the run's folder, for messages. ndcg, vectors: the last score, and the documents' embeddings [N, E] behind it.
    """

    def __init__(self, encoder: TextEncoder, triples: Sequence[Triple], instruction: str | None, run: str = "") -> None:
        self.encoder, self.run = encoder, run
        template = encoder.tokenizer.template
        texts = dict.fromkeys([t.positive for t in triples] + [n for t in triples for n in t.negatives[:1]])
        place = {text: i for i, text in enumerate(texts)}
        self.queries = [(query_side(t, instruction, template), t.query) for t in triples]
        self.documents, self.of_document = list(texts), template.asked("", "document")
        self.relevant = [place[t.positive] for t in triples]
        labels: dict[str, tuple[str, ...]] = defaultdict(tuple)
        for t in triples:
            for text, of_text in zip((t.positive, *t.negatives), t.labels[1:], strict=False):
                labels[text] += of_text
        of_queries = [t.labels[0] if t.labels else () for t in triples]
        number = {query: i for i, query in enumerate(dict.fromkeys(self.queries))}
        asked, known = [number[query] for query in self.queries], np.zeros((len(number), len(texts)), dtype=bool)
        known[asked, self.relevant] = True
        self.left_out = same_label(of_queries, [labels[text] for text in texts]).numpy() | known[asked]
        self.left_out[np.arange(len(triples)), self.relevant] = False
        self.ndcg: float | None = None
        self.vectors = torch.empty(0)

    def rows(self) -> list[Tokens]:
        """Return the tokens of all queries and documents."""
        return self.encoder.tokenizer.pairs([*self.queries, *((self.of_document, d) for d in self.documents)])

    def score(self) -> float:
        """Encode and rank; no random stream of training is touched.

        Raises `UserError`, naming the run and the text, for a vector that is not finite.
        """
        queries = encoded(self.encoder, self.queries)
        documents = self.encoder.encode(self.documents, self.of_document)
        texts_of_queries = [text for _, text in self.queries]
        for side, texts, vectors in (("queries", texts_of_queries, queries), ("documents", self.documents, documents)):
            refuse_nonfinite(texts, vectors, f"Validation ({side}) of {self.run}: the model", TRY)
        self.ndcg = ndcg_at_10(queries, documents, self.relevant, self.left_out)
        self.vectors = torch.from_numpy(documents)
        return self.ndcg
