"""The Bayesian signed-rank test with a region of practical equivalence (Benavoli, Corani, Demsar, Zaffalon 2017).

Own code, because baycomp's loops over draws in Python (about a second a pair); the tests hold the two together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Shares = NDArray[np.float32]

DRAWS = 50_000  # a probability of .5 has a standard error of .0022, one of .95 of .001
SEED = 0
PRIOR = 0.5  # weight of one pseudo-task with difference 0, which lies inside the region: baycomp's default


@dataclass(frozen=True)
class BayesSignedRank:
    """For P pairs, each an array of length P: posterior probabilities that the second design is practically worse,
    equivalent, better. They add up to 1."""

    worse: Floats
    equivalent: Floats
    better: Floats


def bayes_signed_rank(
    differences: Floats, rope: float, draws: int = DRAWS, prior: float = PRIOR, decimals: int = 12
) -> BayesSignedRank:
    """Compare `differences` [P pairs, n tasks] (second minus first) with the region [-rope, rope].

    The distribution of a difference has a Dirichlet-process posterior: weights w ~ Dirichlet(prior, 1, ..., 1) over
    the pseudo-difference 0 and the n differences z. A draw's share of `better` is the sum of w_i w_j where
    (z_i + z_j) / 2 > rope, of `worse` where it is < -rope, of `equivalent` the rest; a probability is how often its
    share is the largest of the three. All pairs share the draws, from seed 0.
    """
    count, n = differences.shape
    z = np.column_stack([np.zeros(count), np.asarray(differences, dtype=np.float64)])
    weights, edge = _weights(n, prior, draws), np.round(2 * rope, decimals)
    found = np.empty((3, count))
    for pair in range(count):
        sums = np.round(z[pair][:, None] + z[pair], decimals)  # 0.004 + 0.006 is not above 2 x 0.005
        worse, better = _share(weights, sums < -edge), _share(weights, sums > edge)
        equivalent = 1 - worse - better
        most = np.maximum(np.maximum(worse, better), equivalent)
        wins = np.array([worse == most, equivalent == most, better == most], dtype=np.float64)
        found[:, pair] = (wins / wins.sum(axis=0)).mean(axis=1)
    return BayesSignedRank(*found)


def _weights(n: int, prior: float, draws: int) -> Shares:
    """Return draws of Dirichlet(prior, 1, ..., 1), [draws, n + 1]; single precision, as shares need six digits."""
    return np.random.default_rng(SEED).dirichlet(np.r_[prior, np.ones(n)], draws).astype(np.float32)


def _share(weights: Shares, within: NDArray[np.bool_]) -> Shares:
    """Return sum_ij w_i w_j within_ij for each draw, [draws]."""
    if not within.any():
        return np.zeros(len(weights), dtype=np.float32)
    return np.einsum("ij,ij->i", weights @ within.astype(np.float32), weights)
