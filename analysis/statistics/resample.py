"""Resamples as counts: how often each unit was drawn. Sums over a resample are then one matrix product."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAWS = 9_999
SEED = 0
CELLS = 4_000_000  # counts held at once


def bootstrap_counts(n: int, draws: int = DRAWS, seed: int = SEED) -> Iterator[Floats]:
    """Yield chunks [draws, n] of how often each of n units is drawn, n draws with replacement (Efron 1979).

    The same counts at every call with the same seed; every row sums to n.
    """
    generator = np.random.default_rng(seed)
    size = max(1, CELLS // n)
    for start in range(0, draws, size):
        rows = min(size, draws - start)
        drawn = generator.integers(0, n, (rows, n)) + np.arange(rows)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def percentile_interval(values: Floats, level: float = 0.95) -> Floats:
    """Return [..., 2]: the middle `level` of the last axis of `values` (the percentile interval of the bootstrap)."""
    ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=-1)
    return np.moveaxis(ends, 0, -1)


def pair_intervals(means: Floats, first: NDArray[np.int64], second: NDArray[np.int64], level: float = 0.95) -> Floats:
    """Return [P, 2] from the designs' resampled means [designs, draws]; a few pairs at a time to bound the memory."""
    size = max(1, 4_000_000 // means.shape[1])
    parts = [slice(start, start + size) for start in range(0, len(first), size)]
    return np.concatenate([percentile_interval(means[second[part]] - means[first[part]], level) for part in parts])
