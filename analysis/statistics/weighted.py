"""Spearman's correlation and average precision of weighted items: a resample is a row of counts, never sorted anew."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def group_ends(ordered: Floats) -> tuple[Ints, Ints]:
    """Return for each place of the last axis of sorted values the first and the last place of its group of ties."""
    n = ordered.shape[-1]
    places = np.arange(n)
    new = np.ones(ordered.shape, dtype=bool)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    last = np.ones(ordered.shape, dtype=bool)
    last[..., :-1] = new[..., 1:]
    start = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    end = np.minimum.accumulate(np.where(last, places, n)[..., ::-1], axis=-1)[..., ::-1]
    return start, end


def weighted_midranks(values: Floats, counts: Floats) -> Floats:
    """Return [B, n]: the midrank of each of `values` [n] in resamples in which it is there `counts` [B, n] times."""
    order = np.argsort(values, kind="stable")
    start, end = group_ends(values[order])
    up_to = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts[:, order], axis=1)], axis=1)
    ranks = np.empty_like(counts)
    ranks[:, order] = (up_to[:, start] + up_to[:, end + 1] + 1) / 2
    return ranks


def weighted_pearson(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Return [B]: the correlation of x and y [B, n] weighted by `counts` [B, n]; 0 where one of them does not vary."""
    total = counts.sum(axis=1, keepdims=True)
    x = x - (counts * x).sum(axis=1, keepdims=True) / total
    y = y - (counts * y).sum(axis=1, keepdims=True) / total
    both, xx, yy = (counts * x * y).sum(axis=1), (counts * x * x).sum(axis=1), (counts * y * y).sum(axis=1)
    spread = np.sqrt(xx * yy)
    return np.divide(both, spread, out=np.zeros_like(both), where=spread > 1e-12)


def weighted_spearman(predicted: Floats, truth: Floats, counts: Floats) -> Floats:
    """Return [B]: Spearman's rho of `predicted` and `truth` [n] in resamples given as `counts` [B, n]."""
    return weighted_pearson(weighted_midranks(predicted, counts), weighted_midranks(truth, counts), counts)


def weighted_average_precision(predicted: Floats, truth: Floats, counts: Floats) -> Floats:
    """Return [B]: average precision of `predicted` [n] for labels `truth` (1 or 0), as scikit-learn defines it.

    The mean over the positives of the precision among all items scored as high or higher; 0 without positives.
    """
    order = np.argsort(-predicted, kind="stable")
    _, end = group_ends(-predicted[order])
    weights = counts[:, order]
    return _precision(weights, weights * truth[order], np.broadcast_to(end, weights.shape))


def row_average_precision(predicted: Floats, truth: Floats) -> Floats:
    """Return [B]: the average precision of each row of `predicted` [B, n], every item once."""
    order = np.argsort(-predicted, axis=1, kind="stable")
    _, end = group_ends(-np.take_along_axis(predicted, order, axis=1))
    return _precision(np.ones_like(predicted), truth[order], end)


def _precision(weights: Floats, positive: Floats, end: Ints) -> Floats:
    hits = np.take_along_axis(np.cumsum(positive, axis=1), end, axis=1)
    seen = np.take_along_axis(np.cumsum(weights, axis=1), end, axis=1)
    precision = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)
    total = positive.sum(axis=1)
    return np.divide((positive * precision).sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
