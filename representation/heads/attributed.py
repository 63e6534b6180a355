"""What a head attends to in each text: one row a text, over the layers or over the classes of tokens that it reads."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from poolers.base import Pooler, States
from poolers.lastlayer import LastLayerTrainable
from poolers.multilayer import MultiLayerTrainable
from representation.heads.head_attention import layer_attention, relative_entropy, token_attention
from representation.heads.token_classes import CLASSES, TokenClasses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from encoders.text_encoder import TextEncoder
    from encoders.tokens import Batch
    from representation.subject import Subject
    from representation.texts import Text, Texts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Attributed:
    """Over n texts. names: K layers ("1", ...) or classes of tokens. attention: [n, K], mean over heads and queries;
    rows sum to one. even: [n, K], what attention spread evenly over all keys would be. entropy: [n], that of attention
    over that of even attention, the mean over heads and queries."""

    names: list[str]
    attention: Floats
    even: Floats
    entropy: Floats

    @staticmethod
    def over_seeds(found: "Sequence[Attributed]") -> "Attributed":
        """The mean over encoders of one design, text by text."""
        attention, even, entropy = (
            np.mean([getattr(own, key) for own in found], axis=0) for key in ("attention", "even", "entropy")
        )
        return Attributed(found[0].names, attention, even, entropy)

    @property
    def shares(self) -> Floats:
        """[K] attention, the mean over texts."""
        means: Floats = self.attention.mean(axis=0)
        return means

    @property
    def expected(self) -> Floats:
        """[K] even attention, the mean over texts."""
        means: Floats = self.even.mean(axis=0)
        return means


def reads_layers(pooler: Pooler) -> bool:
    """Whether it is a head over layers."""
    return isinstance(pooler, MultiLayerTrainable)


def reads_tokens(pooler: Pooler) -> bool:
    """Whether it is a head over the tokens of the last layer."""
    return isinstance(pooler, LastLayerTrainable) and pooler.tokens == "all"


def attributed(subject: "Subject", texts: "Texts", wanted: "Sequence[Text]") -> Attributed:
    """Where the head of `subject`, which reads layers or tokens, attends in each of `wanted`; one pass a text."""
    encoder = subject.encoder()
    parts = {
        i: row for indices, rows in texts.passes(subject, wanted, _reader(encoder)) for i, row in _each(indices, rows)
    }
    attention, even, entropy = (np.stack([parts[i][k] for i in range(len(wanted))]) for k in range(3))
    return Attributed(_names(encoder.encoder.pooler), attention, even, entropy)


def _reader(encoder: "TextEncoder") -> "Callable[[Batch], tuple[Tensor, Tensor, Tensor]]":
    model, classes = encoder.encoder, TokenClasses(encoder.tokenizer.tokenizer)

    def read(batch: "Batch") -> tuple[Tensor, Tensor, Tensor]:
        states, pooler = model.states(batch), model.pooler
        if isinstance(pooler, MultiLayerTrainable):
            return of_layers(pooler, states)
        assert isinstance(pooler, LastLayerTrainable)
        return of_tokens(pooler, states, batch, classes(batch))

    return read


def _each(indices: list[int], rows: tuple[Tensor, Tensor, Tensor]) -> "zip[tuple[int, list[Floats]]]":
    arrays = [part.double().cpu().numpy() for part in rows]
    return zip(indices, [[array[k] for array in arrays] for k in range(len(indices))], strict=True)


def of_layers(pooler: MultiLayerTrainable, states: States) -> tuple[Tensor, Tensor, Tensor]:
    """(attention [B, L], even attention [B, L], relative entropy [B]) of a multilayer head."""
    weights = layer_attention(pooler, states)
    count = weights.shape[-1]
    attention = weights.mean(dim=(1, 2))
    return attention, torch.full_like(attention, 1 / count), relative_entropy(weights, count).mean(dim=(1, 2))


def of_tokens(
    pooler: LastLayerTrainable, states: States, batch: "Batch", classes: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(attention [B, C], even attention [B, C], relative entropy [B]) of a lastlayer head, C classes of tokens.

    classes: [B, T]. Even attention to a class is its share of the tokens that the head reads.
    """
    weights = token_attention(pooler, states, batch.view)
    read = pooler.pooled(batch.view) if pooler.mask_padding else torch.ones_like(batch.view.real)
    count = read.sum(dim=1)
    member = F.one_hot(classes, len(CLASSES)).float() * read[..., None]
    attention = torch.einsum("bt,btc->bc", weights.mean(dim=(1, 2)), member)
    entropy = relative_entropy(weights, count[:, None, None].expand(weights.shape[:-1]))
    return attention, member.sum(dim=1) / count[:, None], entropy.mean(dim=(1, 2))


def _names(pooler: Pooler) -> list[str]:
    return [str(layer + 1) for layer in pooler.layers] if isinstance(pooler, MultiLayerTrainable) else list(CLASSES)
