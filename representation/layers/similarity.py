"""How alike two sets of vectors of the same texts are: linear CKA, and the mean cosine text by text."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
