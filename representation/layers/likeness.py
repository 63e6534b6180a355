"""How alike the layers of a decoder are, and how far training moved each of them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from representation.decoders import Decoder
from representation.layers.similarity import between_layers, linear_cka, mean_cosine
from representation.layers.vectors import layer_vectors
from representation.progress import each
from representation.texts import Texts

if TYPE_CHECKING:
    import pandas as pd

MEASURES = {"cka": linear_cka, "cosine": mean_cosine}
Vectors = dict[str, NDArray[np.float32]]


def layer_likeness(
    found: Sequence[Decoder], texts: Texts, settings: dict[str, Any]
) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Return (every two layers of a decoder, each layer of a run against the same layer of its start).

    Long tables with the columns decoder, seed, pooling, layer, (other,) cka, cosine. One pass over the sample a decoder
    and seed; the vectors of one start are held while its runs are read.
    """
    import pandas as pd

    within, moved = [], []
    start: dict[str, Vectors] = {}
    for decoder in each(found, "similarity of layers", settings):
        for subject in decoder.seeds:
            vectors = layer_vectors(subject, texts, texts.every)
            if not decoder.trained:
                start = {decoder.label: vectors}
            for pooling, own in vectors.items():
                where = (decoder.label, subject.seed, pooling)
                within += [(*where, *row) for row in _every_two(own)]
                if decoder.start in start:
                    moved += [(*where, *row) for row in _same_layer(own, start[decoder.start][pooling])]
    columns = ["decoder", "seed", "pooling", "layer"]
    return (
        pd.DataFrame(within, columns=[*columns, "other", *MEASURES]),
        pd.DataFrame(moved, columns=[*columns, *MEASURES]),
    )


def likeness_tables(within: "pd.DataFrame", pooling: str) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return decoder -> measure -> [L, L], means over seeds."""
    own = within[within["pooling"] == pooling]
    means = own.groupby(["decoder", "layer", "other"], sort=False)[list(MEASURES)].mean()
    labels = dict.fromkeys(own["decoder"])
    return {
        label: {
            name: means.loc[label][name].unstack("other").sort_index().sort_index(axis=1).to_numpy() for name in means
        }
        for label in labels
    }


def _every_two(own: NDArray[np.float32]) -> Iterator[tuple[Any, ...]]:
    tables = [between_layers(own, measure) for measure in MEASURES.values()]
    for i, j in np.ndindex(tables[0].shape):
        yield (i, j, *(float(table[i, j]) for table in tables))


def _same_layer(own: NDArray[np.float32], start: NDArray[np.float32]) -> Iterator[tuple[Any, ...]]:
    for layer, (after, before) in enumerate(zip(own, start, strict=True)):
        yield (layer, *(measure(after, before) for measure in MEASURES.values()))
