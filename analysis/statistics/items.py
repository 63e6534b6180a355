"""Paired tests over the items of one task (queries, pairs of texts, texts); they hold for this task alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import rankdata

from analysis.statistics.arrays import Floats, Ints, blocks
from analysis.statistics.sign_flip import bootstrap_counts, counted_p, flip_means, pair_intervals, sign_patterns
from analysis.statistics.wilcoxon import tie_ends

RANK_DRAWS = 1_999  # of statistics that are no mean, where a draw costs a pass over all items
FEWEST, WORK = 199, 20_000_000  # with very many items fewer draws, so that a pair stays within seconds
GROUPS = 500  # of neighbouring items, left out in turn; up to so many items each is a group of its own
EXACT_UP_TO = 11  # items: 2^10 patterns are fewer than RANK_DRAWS
ROWS = 2_000_000  # numbers held at once


def weighted_midranks(values: Floats, counts: Floats) -> Floats:
    """Return [B, n]: the midrank of each of `values` [n] in resamples in which it is there `counts` [B, n] times."""
    order = np.argsort(values, kind="stable")
    start, end = tie_ends(values[order])
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
    """Return [B]: average precision of `predicted` [n] for labels `truth` (1 or 0), as scikit-learn defines it: the
    mean over the positives of the precision among all items scored as high or higher; 0 without positives."""
    order = np.argsort(-predicted, kind="stable")
    _, end = tie_ends(-predicted[order])
    weights = counts[:, order]
    return _precision(weights, weights * truth[order], end)


def _precision(weights: Floats, positive: Floats, end: Ints) -> Floats:
    hits, seen = (np.take(np.cumsum(x, axis=1), end, axis=1) for x in (positive, weights))
    precision = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)
    total = positive.sum(axis=1)
    return np.divide((positive * precision).sum(axis=1), total, out=np.zeros_like(total), where=total > 0)


SCORES = {"spearman": weighted_spearman, "average_precision": weighted_average_precision}


@dataclass(frozen=True)
class ItemTest:
    """`value` [D] of each design; for P pairs difference, p, p_min [P], `interval` [P, 2]; `flips`: swaps."""

    value: Floats
    difference: Floats
    interval: Floats
    p: Floats
    p_min: Floats
    flips: int
    exact: bool


def compare_items(
    kind: str, items: Floats, truth: Floats, first: Ints, second: Ints, *, level: float = 0.95
) -> ItemTest:
    """Compare designs `second` minus `first` [P] over `items` [designs, seeds, n], with the seeds' mean as score.

    kind "mean": items are scores of each item. The paired permutation test swaps the two designs on an item (Fisher
    1935; for retrieval Smucker, Allan and Carterette 2007), for all seeds at once.
    kind "spearman" or "average_precision": items are predictions, compared with `truth` [n]. The score is no mean, so
    the predictions of an item are swapped, after each design's are replaced by their ranks, since two designs'
    similarities have no common scale (Deutsch, Dror and Roth 2021); the statistic of a swapped set is Pearson's
    correlation of these ranks with those of the truth, or the average precision. Intervals: percentile bootstrap of the
    items, ranked again in every resample.
    """
    if kind != "mean":
        return _ranked(kind, items, truth, (first, second), level)
    values = items.mean(axis=1)
    value, n = values.mean(axis=1), values.shape[1]
    resampled = np.concatenate([counts @ values.T / n for counts in bootstrap_counts(n)]).T
    interval = pair_intervals(resampled, first, second, level)
    test = flip_means(np.round(values[second] - values[first], 12))
    return ItemTest(value, value[second] - value[first], interval, **vars(test))


def _ranked(kind: str, items: Floats, truth: Floats, pairs: tuple[Ints, Ints], level: float) -> ItemTest:
    (first, second), n = pairs, items.shape[2]
    draws = int(np.clip(WORK // n, FEWEST, RANK_DRAWS))
    _, flips, exact = sign_patterns(n, draws, EXACT_UP_TO)
    spearman, score = kind == "spearman", SCORES[kind]
    value = _over_seeds(score, items, truth, np.ones((1, n)))[:, 0]
    resampled = np.concatenate([_over_seeds(score, items, truth, c) for c in bootstrap_counts(n, draws)], axis=1)
    ranks = rankdata(items, axis=2)
    target, change = (rankdata(truth), _swapped_correlation) if spearman else (truth, _swapped_precision)
    changes = [partial(change, one=ranks[a], other=ranks[b], truth=target) for a, b in zip(first, second, strict=True)]
    p = np.array([counted_p(_as_large(swapped, n, draws), flips, exact) for swapped in changes])
    p_min = np.full(len(first), max(counted_p(int(exact), flips, exact), 2.0 ** (1 - n)))
    interval = pair_intervals(resampled, first, second, level)
    return ItemTest(value, value[second] - value[first], interval, p, p_min, flips, exact)


@dataclass(frozen=True)
class ItemVariances:
    """Of P differences: their sampling variance over items [P], the part of it that more seeds would remove [P], and
    the degrees of freedom."""

    variance: Floats
    with_seed: Floats
    freedom: int


def item_variances(kind: str, items: Floats, truth: Floats, first: Ints, second: Ints) -> ItemVariances:
    """Return the sampling variances of the differences that `compare_items` gives, where other items are drawn.

    The runs are fixed: seeds are averaged within an item, so that three seeds are not three times as many items. Of a
    mean the variance is s^2 / n of the items' differences. Of a rank statistic it is the jackknife (Tukey 1958): with
    theta_j the difference without the m_j items of group j, the mean over groups of (n / m_j - 1) (theta_j - theta)^2,
    which for a mean is s^2 / n where each item is a group, and without bias for any groups (Busing, Meijer and van der
    Leeden 1999). With v_1 the mean variance of single seeds' differences, the part of item x seed is
    (v_1 - v) / (seeds - 1): for a mean MS(item x seed) / (n seeds). Needs two items.
    """
    n, seeds = items.shape[2], items.shape[1]
    if kind == "mean":
        strayed, weights = items - items.mean(axis=2, keepdims=True), np.full(n, 1 / (n - 1))
    else:
        strayed, weights = _left_out(SCORES[kind], items, truth)
    variances = np.empty((2, len(first)))
    for pair, (a, b) in enumerate(zip(first, second, strict=True)):
        change = strayed[b] - strayed[a]  # [seeds, groups]
        variances[:, pair] = (change.mean(axis=0) ** 2 * weights).mean(), (change**2 * weights).mean()
    variance, alone = variances
    return ItemVariances(variance, (alone - variance) / max(1, seeds - 1), len(weights) - 1)


def _left_out(score: Callable[..., Floats], items: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """Return theta_j - theta [designs, seeds, groups] of each run alone, and n / m_j - 1 [groups]."""
    n = items.shape[2]
    group = np.arange(n) * min(n, GROUPS) // n
    sizes = np.bincount(group)
    kept = (1.0 * (np.arange(part.start, part.stop)[:, None] != group) for part in blocks(len(sizes), ROWS // n))
    without = np.concatenate([_by_seed(score, items, truth, counts) for counts in kept], axis=2)
    return without - _by_seed(score, items, truth, np.ones((1, n))), n / sizes - 1


def _by_seed(score: Callable[..., Floats], items: Floats, truth: Floats, counts: Floats) -> Floats:
    """Return [designs, seeds, B]: the score of each resample."""
    return np.array([[score(seed, truth, counts) for seed in design] for design in items])


def _over_seeds(score: Callable[..., Floats], items: Floats, truth: Floats, counts: Floats) -> Floats:
    """Return [designs, B]: the score of each resample, mean over seeds."""
    return _by_seed(score, items, truth, counts).mean(axis=1)


def _as_large(change: Callable[[Floats], Floats], n: int, draws: int) -> int:
    """Return the number of swaps of n items whose two-sided `change` is as large as that of no swap at all."""
    observed = abs(change(np.ones((1, n)))[0]) - 1e-10
    chunks = sign_patterns(n, draws, EXACT_UP_TO)[0]
    parts = (signs[block] for signs in chunks for block in blocks(len(signs), ROWS // n))
    return sum(int((np.abs(change(part)) >= observed).sum()) for part in parts)


def _swapped_correlation(signs: Floats, one: Floats, other: Floats, truth: Floats) -> Floats:
    """Return [B]: correlation of `other` minus that of `one` with `truth` where -1 swaps an item; mean over seeds.

    With m and h half the sum and the difference, the swapped ranks are m + s h and m - s h, so all their moments are
    linear in the signs: one matrix product for all patterns.
    """
    n = len(truth)
    target = truth - truth.mean()
    total = np.zeros(len(signs))
    for a, b in zip(one, other, strict=True):
        middle, half = (a + b) / 2 - (n + 1) / 2, (b - a) / 2
        moved = signs @ np.stack([half, 2 * middle * half, half * target], axis=1)
        square = (middle**2 + half**2).sum()
        for sign in (1, -1):
            spread = square + sign * moved[:, 1] - (middle.sum() + sign * moved[:, 0]) ** 2 / n
            product = middle @ target + sign * moved[:, 2]
            size = np.sqrt(np.maximum(spread, 0) * (target @ target))
            total += sign * np.divide(product, size, out=np.zeros_like(product), where=size > 1e-9)
    return total / len(one)


def _swapped_precision(signs: Floats, one: Floats, other: Floats, truth: Floats) -> Floats:
    """Return [B]: average precision of `other` minus that of `one` where -1 swaps an item; mean over seeds.

    Swapped or not, an item has one of its two values, so both lists are in the order of all 2 n values, sorted once:
    of each place of that order an item stands in one list or in the other.
    """
    n, kept, total = len(truth), signs > 0, np.zeros(len(signs))
    for a, b in zip(one, other, strict=True):
        values = -np.concatenate([a, b])
        order = np.argsort(values, kind="stable")
        item, positive = order % n, truth[order % n] > 0
        end = tie_ends(values[order])[1][positive]  # at each positive: all items scored as high or higher
        of_other = kept[:, item] == (order >= n)
        seen, hits = (np.cumsum(of_other & of, axis=1, dtype=np.int32)[:, end] for of in (True, positive))
        all_hits = np.cumsum(positive)[end]
        change = np.where(of_other[:, positive], hits / np.maximum(seen, 1), 0)
        change -= np.where(of_other[:, positive], 0, (all_hits - hits) / np.maximum(end + 1 - seen, 1))
        total += change.sum(axis=1) / max(1, truth.sum())
    return total / len(one)
