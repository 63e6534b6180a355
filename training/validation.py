"""Validation nDCG@10 on triples kept out of training: each query against all positives and hard negatives."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch

from corpora.triples import Triple
from encoders.finite import refuse_nonfinite
from encoders.text_encoder import TextEncoder
from training.finite import TRY


def ndcg_at_10(queries: np.ndarray, documents: np.ndarray, relevant: Sequence[int]) -> float:
    """Mean nDCG@10 of cosine ranking where query i has the one relevant document `relevant[i]`.

    queries: [Q, E]; documents: [K, E]. With one relevant document nDCG is 1 / log2(1 + rank), zero after rank 10.
    A tie counts against the query; a vector of zeros has a cosine of 0 with all. Vectors must be finite.
    """
    scores = _unit(queries) @ _unit(documents).T
    right = scores[np.arange(len(queries)), relevant]
    ranks = (scores >= right[:, None]).sum(axis=1)
    return float(np.mean([1 / math.log2(1 + r) if r <= 10 else 0.0 for r in ranks]))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(vectors.dtype).tiny)


class Validation(pl.Callback):
    """Log nDCG@10 every `every` steps (0: only at the end) and keep the last value with the vectors it came from."""

    def __init__(
        self, encoder: TextEncoder, triples: Sequence[Triple], instruction: str | None, every: int, run: str = ""
    ) -> None:
        self.encoder, self.every, self.run = encoder, every, run
        template = encoder.tokenizer.template
        self.of_query, self.of_document = template.asked(instruction or "", "query"), template.asked("", "document")
        self.queries = [t.query for t in triples]
        self.documents = list(
            dict.fromkeys([t.positive for t in triples] + [n for t in triples for n in t.negatives[:1]])
        )
        place = {d: i for i, d in enumerate(self.documents)}
        self.relevant = [place[t.positive] for t in triples]
        self.ndcg: float | None = None
        self.vectors = torch.empty(0)

    def on_train_batch_end(self, trainer: pl.Trainer, module: pl.LightningModule, *_: Any) -> None:
        """Score when the step has come."""
        step = trainer.global_step
        if step == trainer.max_steps or (self.every and step % self.every == 0):
            module.log("validation nDCG@10", self.score(), prog_bar=True, batch_size=1)

    def score(self) -> float:
        """Encode and rank; no random stream of training is touched.

        Raises `UserError`, naming the run and the text, for a vector that is not finite.
        """
        queries = self.encoder.encode(self.queries, self.of_query)
        documents = self.encoder.encode(self.documents, self.of_document)
        for side, texts, vectors in (("queries", self.queries, queries), ("documents", self.documents, documents)):
            refuse_nonfinite(texts, range(len(texts)), vectors, f"Validation ({side}) of {self.run}: the model", TRY)
        self.ndcg = ndcg_at_10(queries, documents, self.relevant)
        self.vectors = torch.from_numpy(documents)
        return self.ndcg
