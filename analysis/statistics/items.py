"""Paired tests over the items of one task (queries, pairs of texts, texts); they hold for this task alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from analysis.statistics.arrays import Floats, Ints, blocks, length
from analysis.statistics.sign_flip import (
    SEED,
    bootstrap_counts,
    counted_p,
    flip_means,
    percentile_interval,
    sign_patterns,
)

RANK_DRAWS = 1_999  # of a rank correlation, where a draw costs a pass over all items
EXACT_UP_TO = 11  # items: 2^10 patterns are fewer than RANK_DRAWS
ROWS = 2_000_000  # numbers held at once


@dataclass(frozen=True)
class ItemTest:
    """`value` [D] of each design; for P pairs difference, p, p_min [P], `interval` [P, 2]; `flips`: swaps."""

    value: Floats
    difference: Floats
    interval: Floats
    p: Floats
    p_min: Floats
    flips: int


def compare_items(
    kind: str, items: Floats, truth: Floats, first: Ints, second: Ints, *, level: float = 0.95
) -> ItemTest:
    """Compare designs `second` minus `first` [P] over `items` [designs, seeds, n], with the seeds' mean as score.

    kind "mean": items are scores of each item. The paired permutation test swaps the two designs on an item (Fisher
    1935; for retrieval Smucker, Allan and Carterette 2007), for all seeds at once.
    kind "spearman": items are predictions, correlated with `truth` [n]. The predictions of an item are swapped after
    each design's are replaced by their ranks, since two designs' similarities have no common scale (Deutsch, Dror and
    Roth 2021); the statistic of a swapped set is Pearson's correlation of these ranks with those of the truth.
    Intervals: percentile bootstrap of the items, ranked again in every resample.
    """
    if kind == "spearman":
        return _ranked(items, truth, (first, second), level)
    values = items.mean(axis=1)
    resampled = np.concatenate([counts @ values.T / values.shape[1] for counts in bootstrap_counts(values.shape[1])])
    interval = percentile_interval((resampled[:, second] - resampled[:, first]).T, level)
    test, value = flip_means(np.round(values[second] - values[first], 12)), values.mean(axis=1)
    return ItemTest(value, value[second] - value[first], interval, **vars(test))


def _ranked(items: Floats, truth: Floats, pairs: tuple[Ints, Ints], level: float) -> ItemTest:
    (first, second), n = pairs, items.shape[2]
    value = _spearman(items, truth, np.arange(n)[None])[:, 0]
    resampled = np.concatenate([_spearman(items, truth, rows) for rows in _resamples(n)], axis=1)
    interval = percentile_interval(resampled[second] - resampled[first], level)
    ranks, target = rankdata(items, axis=2), rankdata(truth)
    _, flips, exact = sign_patterns(n, RANK_DRAWS, EXACT_UP_TO)
    as_large = [_as_large(ranks[a], ranks[b], target) for a, b in zip(first, second, strict=True)]
    p = counted_p(np.array(as_large), flips, exact)
    p_min = np.full(len(first), max(counted_p(int(exact), flips, exact), 2.0 ** (1 - n)))
    return ItemTest(value, value[second] - value[first], interval, p, p_min, flips)


def _resamples(n: int) -> Iterator[Ints]:
    """Yield the places [B, n] of RANK_DRAWS resamples of n items, a few at a time."""
    generator = np.random.default_rng(SEED)
    for block in blocks(RANK_DRAWS, ROWS // n):
        yield generator.integers(0, n, (length(block), n))


def _spearman(items: Floats, truth: Floats, rows: Ints) -> Floats:
    """Return Spearman's rho [designs, B] of `items` [designs, seeds, n] in resamples `rows` [B, n], mean over seeds."""
    target = _standardised(rankdata(truth[rows], axis=1))
    of_seeds = [[(_standardised(rankdata(seed[rows], axis=1)) * target).sum(axis=1) for seed in d] for d in items]
    return np.array(of_seeds).mean(axis=1)


def _standardised(values: Floats) -> Floats:
    """Return the rows of [B, n] about their means, of length 1; 0 where a row does not vary."""
    centred = values - values.mean(axis=1, keepdims=True)
    size = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.divide(centred, size, out=np.zeros_like(centred), where=size > 1e-9)


def _as_large(one: Floats, other: Floats, truth: Floats) -> int:
    """Return the number of swaps of items whose change of the correlation is as large as that of no swap at all."""
    n = len(truth)
    observed = abs(_swapped(np.ones((1, n)), one, other, truth)[0]) - 1e-10
    chunks = sign_patterns(n, RANK_DRAWS, EXACT_UP_TO)[0]
    parts = (signs[block] for signs in chunks for block in blocks(len(signs), ROWS // n))
    return sum(int((np.abs(_swapped(part, one, other, truth)) >= observed).sum()) for part in parts)


def _swapped(signs: Floats, one: Floats, other: Floats, truth: Floats) -> Floats:
    """Return [B]: correlation of `other` minus that of `one` [seeds, n] with `truth` where -1 swaps an item; mean over
    seeds."""
    target, kept, total = _standardised(truth[None]), signs > 0, np.zeros(len(signs))
    for a, b in zip(one, other, strict=True):
        after, before = (_standardised(np.where(kept, *pair)) for pair in ((b, a), (a, b)))
        total += ((after - before) * target).sum(axis=1)
    return total / len(one)
