"""95 % intervals of many repetitions at once; each is a function of differences [reps, n] that returns (low, high)."""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from analysis.statistics import intervals
from analysis.statistics.arrays import Bools, Floats

Bounds = tuple[Floats, Floats]

RESAMPLES = 1999
FEWEST = 6  # tasks: fewer have no bootstrap-t
CHUNK = 250  # repetitions whose resamples are shared
TAILS = np.array([0.025, 0.975])


def _bootstrap(differences: Floats, ends: Callable[[Floats, Floats], Floats]) -> Bounds:
    """Return the `ends` [reps, 2] of differences and resampling weights [1999, n], drawn anew for each chunk."""
    n, rng = differences.shape[1], np.random.default_rng(0)
    chunks = [differences[start : start + CHUNK] for start in range(0, len(differences), CHUNK)]
    both = np.concatenate([ends(d, rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n) for d in chunks])
    return both[:, 0], both[:, 1]


def _quantiles(means: Floats, tails: Floats) -> Floats:
    """Return the quantiles [reps, 2] of sorted `means` [reps, 1999] at `tails`, between two means on their line."""
    place = np.broadcast_to(np.clip(tails, 0, 1) * (RESAMPLES - 1), (len(means), 2))
    below = np.floor(place).astype(int)
    low, high = (np.take_along_axis(means, np.minimum(at, RESAMPLES - 1), axis=1) for at in (below, below + 1))
    return np.asarray((1 - (place - below)) * low + (place - below) * high)


def percentile(differences: Floats) -> Bounds:
    """Bootstrap percentile interval of the mean (Efron 1979)."""
    return _bootstrap(differences, lambda d, weights: _quantiles(np.sort(d @ weights.T, axis=1), TAILS))


def bca(differences: Floats) -> Bounds:
    """Bias-corrected and accelerated bootstrap interval of the mean (Efron 1987)."""

    def ends(d: Floats, weights: Floats) -> Floats:
        means, centre = np.sort(d @ weights.T, axis=1), d.mean(axis=1, keepdims=True)
        below = (means < centre).mean(axis=1) + (means == centre).mean(axis=1) / 2
        z0 = ndtri(np.clip(below, 1 / (RESAMPLES + 1), RESAMPLES / (RESAMPLES + 1)))[:, None]
        squares = ((d - centre) ** 2).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            a = np.nan_to_num(((d - centre) ** 3).sum(axis=1) / (6 * squares**1.5))[:, None]
        z = z0 + ndtri(TAILS)
        return _quantiles(means, ndtr(z0 + z / (1 - a * z)))

    return _bootstrap(differences, ends)


def bootstrap_t(differences: Floats) -> Bounds:
    """Studentised bootstrap interval of the mean (Efron and Tibshirani 1993, section 12.5).

    A resample without spread has an infinite t. Below six tasks the interval is the whole line.
    """
    reps, n = differences.shape
    if n < FEWEST:
        return np.full(reps, -np.inf), np.full(reps, np.inf)
    places = np.round(TAILS * (RESAMPLES + 1)).astype(int) - 1

    def ends(d: Floats, weights: Floats) -> Floats:
        mean, error = d.mean(axis=1, keepdims=True), d.std(axis=1, ddof=1, keepdims=True) / np.sqrt(n)
        centre, square = (d - mean) @ weights.T, (d - mean) ** 2 @ weights.T
        variance = square - centre**2
        variance[variance <= 1e-14 * square] = 0  # what is left of equal values is rounding
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nan_to_num(centre / np.sqrt(variance / (n - 1)), nan=0.0, posinf=np.inf, neginf=-np.inf)
            t = np.partition(t, places, axis=1)[:, places[::-1]]
            return np.where(error > 0, mean - t * error, mean)

    return _bootstrap(differences, ends)


def hodges_lehmann(differences: Floats) -> Bounds:
    """The shipped interval of the typical difference; below six tasks no value can be rejected: the whole line."""
    centre = intervals.hodges_lehmann(differences)
    return centre.low, centre.high


INTERVALS: dict[str, Callable[[Floats], Bounds]] = {
    "bootstrap, percentile": percentile,
    "bootstrap, BCa": bca,
    "bootstrap-t": bootstrap_t,
    "t": intervals.student_interval,
    "Hodges-Lehmann": hodges_lehmann,
}


def covers(bounds: Bounds, value: float) -> Bools:
    """Return whether each interval holds `value`, forgiving float noise."""
    return np.asarray((bounds[0] <= value + 1e-12) & (bounds[1] >= value - 1e-12))
