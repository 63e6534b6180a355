"""Vectors of a multilayer head as if one layer were not there: its key is masked, nothing is trained again."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from encoders.text_encoder import Meter, TextEncoder
from encoders.tokens import Batch
from poolers.multilayer import MultiLayerTrainable
from records.fingerprint import of_value

HEAD_TEXTS = 512  # whose reductions run through the head at once


def vectors_without(pooler: MultiLayerTrainable, reductions: Tensor, left_out: int | None) -> Tensor:
    """[B, E] float32 of reductions [B, L, ...], as `pooler.reduce` made them, stacked.

    left_out: place of the layer whose keys have no weight in the softmax; the other weights grow in proportion. None:
    all layers are read.
    """
    kept = [i for i in range(reductions.shape[1]) if i != left_out]
    head = pooler.head
    if pooler.tokens == "all":
        parts = [reductions[:, i] for i in kept]
        return head.finish(head.merge([p[..., :-1] for p in parts], [p[..., -1:] for p in parts]))
    states = reductions if pooler.layer_weights is None else reductions + pooler.layer_weights
    return head(states[:, kept])


class Reductions:
    """What a multilayer head reads of each text, from one forward pass a text, kept while a run is looked at.

    One vector a layer: L x D float32 a text (6 KB with the embedded base, 0.5 MB with a decoder of 7 B parameters).
    """

    def __init__(self, encoder: TextEncoder) -> None:
        pooler = encoder.encoder.pooler
        assert isinstance(pooler, MultiLayerTrainable)
        self.encoder, self.pooler = encoder, pooler
        self._rows: dict[tuple[str, str], Tensor] = {}

    def of(self, texts: Sequence[str], instruction: str) -> Tensor:
        """[N, L, ...] on the CPU; texts that are not here yet are encoded."""
        lacking = [text for text in dict.fromkeys(texts) if (instruction, text) not in self._rows]
        for indices, rows in self.encoder.run(lacking, instruction, self._stacked):
            for i, row in zip(indices, rows, strict=True):
                self._rows[instruction, lacking[i]] = row.clone()
        return torch.stack([self._rows[instruction, text] for text in texts])

    def _stacked(self, batch: Batch) -> Tensor:
        states = self.encoder.encoder.states(batch)
        assert isinstance(states, list)
        return torch.stack(states, dim=1).cpu()


class LayerLeftOut:
    """A run's encoder without one of its layers, or with all of them, as evaluation takes an encoder."""

    def __init__(self, reductions: Reductions, left_out: int | None) -> None:
        own = reductions.encoder
        self.reductions, self.left_out = reductions, left_out
        self.fingerprint = of_value([own.fingerprint, "layer left out", left_out])
        self.settings, self.sources = own.settings, own.sources
        self.embedding_dim, self.max_length = own.embedding_dim, own.max_length

    @property
    def meter(self) -> Meter:
        """Of the run's encoder."""
        return self.reductions.encoder.meter

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32)."""
        own = self.reductions.encoder
        for start in range(0, len(texts), HEAD_TEXTS):
            part = texts[start : start + HEAD_TEXTS]
            states = self.reductions.of(part, instruction).to(own.device)
            with torch.inference_mode():
                vectors = vectors_without(self.reductions.pooler, states, self.left_out)
                vectors = F.normalize(vectors, dim=-1) if own.encoder.normalize else vectors
            yield list(range(start, start + len(part))), vectors.cpu().numpy()
