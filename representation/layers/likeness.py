"""How alike the layers of a decoder are, and how far training moved each of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from representation.encoders_studied import Decoder
from representation.layers.vectors import layer_vectors
from representation.progress import each
from representation.texts import Texts

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.floating]


def linear_cka(first: Floats, second: Floats) -> float:
    """Linear centred kernel alignment of [N, D] and [N, E]; NaN where one of them does not vary over the texts.

    ||Y'X||^2 / (||X'X|| ||Y'Y||), Frobenius norms, X and Y with their columns centred (Kornblith, Norouzi, Lee and
    Hinton 2019, "Similarity of neural network representations revisited", section 3 and equation of 3.1's linear
    kernel). From 0 to 1; unmoved by rotations of either side and by one common scale, not by other linear maps.
    """
    x, y = (_centred(side) for side in (first, second))
    norm = np.sqrt(_alignment(x, x) * _alignment(y, y))
    return float(_alignment(x, y) / norm) if norm > 0 else float("nan")


def mean_cosine(first: Floats, second: Floats) -> float:
    """Mean over texts of the cosine between the two vectors of a text, [N, D] each; -1 to 1."""
    return float((unit(first) * unit(second)).sum(axis=1).mean())


def between_layers(vectors: Floats, measure: Callable[[Floats, Floats], float]) -> NDArray[np.float64]:
    """[L, L] `measure` of every pair of layers; vectors: [L, N, D]. `measure` is symmetric."""
    count = len(vectors)
    table = np.empty((count, count))
    for i in range(count):
        for j in range(i, count):
            table[i, j] = table[j, i] = measure(vectors[i], vectors[j])
    return table


def unit(vectors: Floats) -> NDArray[np.float64]:
    """The vectors [N, D] at length 1; one of length 0 stays 0."""
    wide = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(length > 0, length, 1.0)


def _centred(vectors: Floats) -> NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    return wide - wide.mean(axis=0)


def _alignment(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """||y'x||^2, by way of the smaller of [D, E] and the texts' [N, N]: sum of (x x') * (y y')."""
    if len(x) < min(x.shape[1], y.shape[1]):
        return float(((x @ x.T) * (y @ y.T)).sum())
    return float(((y.T @ x) ** 2).sum())


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
