"""Similarity of the layers of a decoder, and how far training moved each of them."""

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from encoders.vector_geometry import Floats, unit
from representation.encoders_studied import Decoder, Studied
from representation.figures import tables_of
from representation.question import each
from representation.readings import arrays, readings_of
from representation.texts import Arrays, Text, Texts, gathered

POOLINGS = {"mean": "mean of the tokens", "eos": "last token"}  # of a reading, in words


def linear_cka(first: Floats, second: Floats) -> float:
    """Linear centred kernel alignment of [N, D] and [N, E]; NaN where one of them does not vary over the texts.

    ||Y'X||^2 / (||X'X|| ||Y'Y||), Frobenius norms, X and Y with their columns centred (Kornblith, Norouzi, Lee and
    Hinton 2019, "Similarity of neural network representations revisited", section 3 and equation of 3.1's linear
    kernel). From 0 to 1; unmoved by rotations of either side and by one common scale, not by other linear maps.
    """
    x, y = (np.asarray(side, dtype=np.float64) for side in (first, second))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    norm = np.sqrt(_alignment(x, x) * _alignment(y, y))
    return float(_alignment(x, y) / norm) if norm > 0 else float("nan")


def _alignment(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """||y'x||^2, by way of the smaller of [D, E] and the texts' [N, N]: sum of (x x') * (y y')."""
    if len(x) < min(x.shape[1], y.shape[1]):
        return float(((x @ x.T) * (y @ y.T)).sum())
    return float(((y.T @ x) ** 2).sum())


def mean_cosine(first: Floats, second: Floats) -> float:
    """Mean over texts of the cosine between the two vectors of a text, [N, D] each; -1 to 1."""
    return float((unit(first) * unit(second)).sum(axis=1).mean())


MEASURES = {"cka": linear_cka, "cosine": mean_cosine}


def between_layers(vectors: Floats, measure: Callable[[Floats, Floats], float]) -> NDArray[np.float64]:
    """[L, L] `measure` of every pair of layers; vectors: [L, N, D]. `measure` is symmetric."""
    table = np.empty((len(vectors), len(vectors)))
    for i, j in combinations_with_replacement(range(len(vectors)), 2):
        table[i, j] = table[j, i] = measure(vectors[i], vectors[j])
    return table


def layer_vectors(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> Arrays:
    """Return pooling -> [L, N, D], the vectors of `wanted` as the layers have them; CKA looks at their lengths too."""
    words = [f"layer:{i}/{p}" for p in POOLINGS for i in range(studied.encoder().encoder.pooler.num_layers)]
    readings = readings_of(studied, dict(zip(words, words, strict=True)), normalize=False)
    vectors = gathered(texts.passes(studied, wanted, arrays(readings)), len(wanted))
    return {p: np.stack([vectors[word] for word in words if word.endswith(f"/{p}")]) for p in POOLINGS}


def layer_likeness(
    distinct: Sequence[Decoder], texts: Texts, settings: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (every two layers of a decoder, each layer of a run against the same layer of its start).

    Long tables with the columns decoder, seed, pooling, layer, (other,) cka, cosine. One pass over the sample per
    decoder and seed; the vectors of one start are kept while its runs are read.
    """
    within, moved = [], []
    starts: dict[str, Arrays] = {}
    for decoder in each(distinct, "similarity of layers", settings):
        for studied in decoder.seeds:
            vectors = layer_vectors(studied, texts, texts.every)
            if not decoder.trained:
                starts = {decoder.label: vectors}
            for pooling, layers in vectors.items():
                where = (decoder.label, studied.seed, pooling)
                tables = [between_layers(layers, measure) for measure in MEASURES.values()]
                within += [(*where, i, j, *(table[i, j] for table in tables)) for i, j in np.ndindex(tables[0].shape)]
                if decoder.start in starts:
                    pairs = enumerate(zip(layers, starts[decoder.start][pooling], strict=True))
                    moved += [(*where, i, *(measure(*pair) for measure in MEASURES.values())) for i, pair in pairs]
    columns = ["decoder", "seed", "pooling", "layer"]
    return (
        pd.DataFrame(within, columns=[*columns, "other", *MEASURES]),
        pd.DataFrame(moved, columns=[*columns, *MEASURES]),
    )


def likeness_tables(within: pd.DataFrame, pooling: str) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return decoder -> measure -> [L, L], means over seeds."""
    rows = within[within["pooling"] == pooling].rename(columns={"decoder": "encoder"})
    of_measures = {name: tables_of(rows, "layer", "other", name) for name in MEASURES}
    return {
        label: {name: tables[label].to_numpy() for name, tables in of_measures.items()}
        for label in rows["encoder"].unique()
    }
