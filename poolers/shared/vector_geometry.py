"""Vectors at unit length, and two numbers of them, each from its paper."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

Floats = NDArray[np.floating]


def unit(vectors: Floats) -> NDArray[np.float64]:
    """Return the vectors [N, D] at length 1; one of length 0 stays 0."""
    wide = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(length > 0, length, 1.0)


def alignment(first: Floats, second: Floats) -> float:
    """Mean squared distance of positive pairs, [N, D] each; 0 to 4 (arXiv 2005.10242, L_align with alpha = 2)."""
    return float(((unit(first) - unit(second)) ** 2).sum(axis=1).mean())


def uniformity(vectors: Floats) -> float:
    """log of the mean of exp(-2 ||x - y||^2) over the pairs of different texts of [N, D]; -8 to 0, less is more even.

    arXiv 2005.10242, L_uniform with t = 2, as their code computes it.
    """
    return float(np.log(np.exp(-2 * pdist(unit(vectors), "sqeuclidean")).mean()))
