"""The Borda rank of MTEB's leaderboard, and how firm it is under resampling of the tasks."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from analysis.statistics.arrays import Floats, Ints, blocks, length
from analysis.statistics.ranks import task_ranks

RESAMPLES = 10_000
SEED = 0
CHUNK = 1_000_000  # resampled totals held at once
DRAWN_UP_TO = 1000  # tasks: beyond them a normal law


@dataclass(frozen=True)
class Borda:
    """For k designs, each an array of length k.

    `points`: over tasks, the designs beaten and half of those equalled; `rank`: 1 + the designs with more points;
    `low`, `high`: bootstrap interval of the rank; `first`: the probability of being first, shared where tied.
    """

    points: Floats
    rank: Ints
    low: Ints
    high: Ints
    first: Floats


def borda(scores: Floats, decimals: int = 12, resamples: int = RESAMPLES, level: float = 0.95) -> Borda:
    """Rank k designs by their scores [n tasks, k] (Borda count: Colombo et al. 2022; Enevoldsen et al. 2025, MMTEB).

    n tasks are drawn with replacement, `resamples` times from seed 0; the interval holds the middle `level` of the
    ranks, .95 from the 2.5th percentile to the 97.5th (Hall and Miller 2009 on the bootstrap of rankings: where designs
    are close it is rough). Beyond 1,000 tasks the totals are drawn from the normal law with the mean and the covariance
    of such resamples.
    """
    n, k = scores.shape
    points = k - task_ranks(scores, decimals)
    generator, even = np.random.default_rng(SEED), np.full(n, 1 / n)
    ranks, first = np.empty((resamples, k), dtype=np.int64), np.zeros(k)
    for block in blocks(resamples, CHUNK // k):
        rows = length(block)
        many = n > DRAWN_UP_TO
        totals = _normal_totals(points, rows, generator) if many else generator.multinomial(n, even, rows) @ points
        ranks[block] = drawn = ranks_of(totals)
        best = drawn == 1
        first += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    whole = points.sum(axis=0)
    return Borda(whole, ranks_of(whole[None])[0], low, high, first / resamples)


def _normal_totals(points: Floats, rows: int, generator: np.random.Generator) -> Floats:
    """Draw [rows, k] totals with their mean and covariance, rounded to the halves that points are, so that ties tie."""
    covariance = len(points) * np.cov(points, rowvar=False, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    spread = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = points.sum(axis=0) + generator.normal(size=(rows, points.shape[1])) @ spread.T
    return np.asarray(np.round(2 * drawn) / 2)


def ranks_of(totals: Floats) -> Ints:
    """Return 1 + the number of larger values in the same row, [rows, k]; points are halves, so equal ones are equal."""
    return np.asarray(rankdata(-totals, method="min", axis=1), dtype=np.int64)
