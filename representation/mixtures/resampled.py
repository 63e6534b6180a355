"""Ranks, Spearman correlations and average precision of pairs, on the pairs themselves and on samples of them.

A sample is how often each pair is in it, [n] whole numbers; all functions take R of them at once.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def once(n: int) -> Floats:
    """[1, n]: every pair once, which is no sample but the data."""
    return np.ones((1, n))


def draws(units: NDArray[np.int64], replicates: int, seed: int) -> Floats:
    """[R, n] how often each pair is there when whole units are drawn with replacement, as many as there are.

    units: [n] the unit of each pair, 0 to U-1. Pairs that share a text are one unit, since they are no two facts.
    """
    rng = np.random.default_rng(seed)
    number = int(units.max()) + 1
    drawn = rng.multinomial(number, np.full(number, 1 / number), size=replicates)
    return drawn[:, units].astype(float)


def left_out(units: NDArray[np.int64]) -> Floats:
    """[U, n] the data without each unit in turn, for the jackknife."""
    return (np.arange(int(units.max()) + 1)[:, None] != units).astype(float)


def ranks(values: Floats, counts: Floats) -> Floats:
    """[R, n] average rank of each pair's value [n] in each sample [R, n].

    Equal to scipy's `rankdata` of the sample written out; a pair that was not drawn has some rank too, of no meaning.
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[:, order], axis=1)
    first, last = _ties(values[order])
    before = np.concatenate([np.zeros((len(counts), 1)), below], axis=1)[:, first]
    held = np.empty_like(counts)
    held[:, order] = (before + below[:, last] + 1) / 2
    return held


def _ties(ordered: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last place of the group of equal values that each place belongs to."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.concatenate([starts[1:], [len(ordered)]]) - 1
    group = np.repeat(np.arange(len(starts)), ends - starts + 1)
    return starts[group], ends[group]


def spearman(rows: Floats, counts: Floats) -> Floats:
    """[R, K, K] Spearman correlations of the K rows of `rows` [K, n] in each sample; NaN where a row does not vary."""
    held = np.stack([ranks(row, counts) for row in rows], axis=1)  # [R, K, n]
    weights = counts[:, None, :] / counts.sum(axis=1)[:, None, None]
    centred = held - (held * weights).sum(axis=2, keepdims=True)
    covariance = (centred * weights) @ centred.swapaxes(1, 2)
    spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    spread = np.where(spread > 1e-6, spread, np.nan)  # ranks that vary are far above what rounding leaves
    found: Floats = covariance / (spread[:, :, None] * spread[:, None, :])
    return found


def average_precision(similarity: Floats, truth: NDArray[np.bool_], counts: Floats) -> Floats:
    """[R] average precision of `similarity` [n] for `truth` [n] in each sample, ties taken together (as sklearn does).

    NaN where a sample holds no true pair.
    """
    order = np.argsort(-similarity, kind="stable")
    drawn, true = counts[:, order], (counts * truth)[:, order]
    _, last = _ties(similarity[order])
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.cumsum(true, axis=1)[:, last] / np.cumsum(drawn, axis=1)[:, last]
        found: Floats = (np.where(true > 0, true * precision, 0.0)).sum(axis=1) / true.sum(axis=1)
    return found


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of bootstrap values [R]; NaN among them are left out."""
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
