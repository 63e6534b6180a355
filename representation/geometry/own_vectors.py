"""An encoder's own vectors of the sample, and of the pairs, from one forward pass a text."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from representation.subject import Subject
from representation.texts import Text, Texts

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class OwnVectors:
    """`of_type`: task type -> [n, E]; `queries`, `documents`: [p, E] each, row by row a relevant pair."""

    of_type: dict[str, Vectors]
    queries: Vectors
    documents: Vectors


def own_vectors(subject: Subject, texts: Texts) -> OwnVectors:
    """Return the vectors as evaluation gets them, with the instructions that evaluation gives."""
    encoder = subject.encoder()
    wanted: list[Text] = [*texts.every, *(query for query, _ in texts.pairs), *(body for _, body in texts.pairs)]
    place: dict[Text, int] = {}
    for text in wanted:
        place.setdefault(text, len(place))
    found = np.empty((len(place), encoder.embedding_dim), dtype=np.float32)
    for places, part in texts.passes(subject, list(place), lambda batch: encoder.encoder(batch).cpu().numpy()):
        found[places] = part

    def rows(some: list[Text]) -> Vectors:
        return found[[place[text] for text in some]]

    return OwnVectors(
        {kind: rows(sample) for kind, sample in texts.of_type.items()},
        rows([query for query, _ in texts.pairs]),
        rows([body for _, body in texts.pairs]),
    )
