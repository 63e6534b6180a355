"""The shape of a cloud of vectors, each number from its paper; vectors are brought to unit length first."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

Floats = NDArray[np.floating]


def unit(vectors: Floats) -> NDArray[np.float64]:
    """Return the vectors [N, D] at length 1; one of length 0 stays 0."""
    wide = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(length > 0, length, 1.0)


def anisotropy(vectors: Floats) -> float:
    """Mean cosine of two different texts of [N, D], over all pairs (Ethayarajh 2019); 0 spread evenly to 1."""
    x = unit(vectors)
    total = x.sum(axis=0)
    return float((total @ total - (x * x).sum()) / (len(x) * (len(x) - 1)))


def alignment(first: Floats, second: Floats) -> float:
    """Mean squared distance of positive pairs, [N, D] each; 0 to 4 (arXiv 2005.10242, L_align with alpha = 2)."""
    return float(((unit(first) - unit(second)) ** 2).sum(axis=1).mean())


def uniformity(vectors: Floats) -> float:
    """log of the mean of exp(-2 ||x - y||^2) over the pairs of different texts of [N, D]; -8 to 0, less is more even.

    arXiv 2005.10242, L_uniform with t = 2, as their code computes it.
    """
    return float(np.log(np.exp(-2 * pdist(unit(vectors), "sqeuclidean")).mean()))


def effective_rank(vectors: Floats) -> float:
    """exp of the entropy of the singular values of [N, D], divided by their sum; 1 to min(N, D).

    Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality", definition 1.
    """
    return _entropy_rank(unit(vectors))


def centred_effective_rank(vectors: Floats) -> float:
    """`effective_rank` after the mean vector is taken away: what varies between texts, without their common part."""
    x = unit(vectors)
    return _entropy_rank(x - x.mean(axis=0))


def _entropy_rank(matrix: NDArray[np.float64]) -> float:
    values = np.linalg.svd(matrix, compute_uv=False)
    if values.sum() == 0:
        return float("nan")
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))
