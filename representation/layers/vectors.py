"""One vector a layer and text, read without parameters, from one forward pass a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluation.candidates.readings import ReadingCandidate, read_by
from representation.encoders_studied import Subject
from representation.texts import Text, Texts

if TYPE_CHECKING:
    from encoders.encoder import Readings

POOLINGS = {"mean": "mean of the tokens", "eos": "last token"}  # of a reading, in words


def layer_readings(subject: Subject) -> list[ReadingCandidate]:
    """Return the readings of every layer, mean and last token, of one encoder (evaluation/candidates/readings.py)."""
    found = read_by([subject.candidate], [f"layer:*/{pooling}" for pooling in POOLINGS])
    return [reading for reading in found if isinstance(reading, ReadingCandidate)]


def layer_vectors(subject: Subject, texts: Texts, wanted: Sequence[Text]) -> dict[str, NDArray[np.float32]]:
    """Return pooling -> [L, N, D], the vectors of `wanted` as the layers have them, their lengths kept."""
    readings = _readings(subject)
    found: dict[str, NDArray[np.float32]] = {}

    def compute(batch: "object") -> dict[str, NDArray[np.float32]]:
        return {name: vectors.cpu().numpy() for name, vectors in readings(batch).items()}  # type: ignore[arg-type]

    for places, vectors in texts.passes(subject, wanted, compute):
        for pooling in POOLINGS:
            layers = np.stack([vectors[name] for name in vectors if name.endswith(f"/{pooling}")])
            if pooling not in found:
                found[pooling] = np.empty((len(layers), len(wanted), layers.shape[2]), dtype=np.float32)
            found[pooling][:, places] = layers
    return found


def _readings(subject: Subject) -> "Readings":
    """All layers' poolers on the encoder that is held; not normalised, since CKA looks at lengths too."""
    from encoders.encoder import Reading, Readings
    from poolers.shared.registry import build_pooler

    encoder = subject.encoder()
    own = encoder.encoder.pooler
    built = {
        r.reading: Reading(build_pooler(r.poolers[r.reading], own.hidden_size, own.num_layers, 0), normalize=False)
        for r in layer_readings(subject)
    }
    return Readings(encoder.encoder, built)
