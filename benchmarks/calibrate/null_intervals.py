"""95 % intervals of many repetitions at once; each is a function of differences [reps, n] that returns (low, high)."""

from collections.abc import Callable

import numpy as np

from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.power import critical_values

Bounds = tuple[Floats, Floats]

RESAMPLES = 1999
FEWEST = 6  # tasks: fewer have no bootstrap-t
CHUNK = 250  # repetitions whose resamples are shared
TAILS = np.array([0.025, 0.975])


def resampled_means(differences: Floats, rng: np.random.Generator) -> Floats:
    """Return sorted bootstrap means [reps, 1999] from one matrix of resampling weights."""
    n = differences.shape[1]
    weights = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
    return np.sort(differences @ weights.T, axis=1)


def _bootstrap(differences: Floats, tails: Callable[[Floats, Floats], Floats]) -> Bounds:
    """Interval whose tails [reps, 2] depend on the differences and their bootstrap means."""
    rng, parts = np.random.default_rng(0), []
    for start in range(0, len(differences), CHUNK):
        d = differences[start : start + CHUNK]
        means = resampled_means(d, rng)
        place = np.clip(tails(d, means), 0, 1) * (RESAMPLES - 1)
        below = np.floor(place).astype(int)
        share = place - below
        rows = np.arange(len(d))[:, None]
        parts.append((1 - share) * means[rows, below] + share * means[rows, np.minimum(below + 1, RESAMPLES - 1)])
    both = np.concatenate(parts)
    return both[:, 0], both[:, 1]


def percentile(differences: Floats) -> Bounds:
    """Bootstrap percentile interval of the mean (Efron 1979)."""
    return _bootstrap(differences, lambda d, _: np.broadcast_to(TAILS, (len(d), 2)))


def bca(differences: Floats) -> Bounds:
    """Bias-corrected and accelerated bootstrap interval of the mean (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    def tails(d: Floats, means: Floats) -> Floats:
        centred = d - d.mean(axis=1, keepdims=True)
        below = (means < d.mean(axis=1, keepdims=True)).mean(axis=1) + (means == d.mean(axis=1, keepdims=True)).mean(
            axis=1
        ) / 2
        z0 = ndtri(np.clip(below, 1 / (RESAMPLES + 1), RESAMPLES / (RESAMPLES + 1)))[:, None]
        squares = (centred**2).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            a = np.nan_to_num((centred**3).sum(axis=1) / (6 * squares**1.5))[:, None]
        z = z0 + ndtri(TAILS)
        return np.asarray(ndtr(z0 + z / (1 - a * z)))

    return _bootstrap(differences, tails)


def bootstrap_t(differences: Floats) -> Bounds:
    """Studentised bootstrap interval of the mean (Efron and Tibshirani 1993, section 12.5).

    A resample without spread has an infinite t. Below six tasks the interval is the whole line.
    """
    reps, n = differences.shape
    if n < FEWEST:
        whole = np.full(reps, np.inf)
        return -whole, whole
    rng, low, high = np.random.default_rng(0), [], []
    places = np.round(TAILS * (RESAMPLES + 1)).astype(int) - 1
    for start in range(0, reps, CHUNK):
        d = differences[start : start + CHUNK]
        mean, error = d.mean(axis=1, keepdims=True), d.std(axis=1, ddof=1, keepdims=True) / np.sqrt(n)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
        centre, square = (d - mean) @ weights.T, (d - mean) ** 2 @ weights.T
        variance = square - centre**2
        variance[variance <= 1e-14 * square] = 0  # what is left of equal values is rounding
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nan_to_num(centre / np.sqrt(variance / (n - 1)), nan=0.0, posinf=np.inf, neginf=-np.inf)
            t = np.partition(t, places, axis=1)[:, places]
            ends = np.where(error > 0, mean - t * error, mean)
        low.append(ends[:, 1])
        high.append(ends[:, 0])
    return np.concatenate(low), np.concatenate(high)


def t_interval(differences: Floats, level: float = 0.95) -> Bounds:
    """Student's interval of the mean."""
    from scipy.special import stdtrit

    n = differences.shape[1]
    half = stdtrit(n - 1, (1 + level) / 2) * differences.std(axis=1, ddof=1) / np.sqrt(n)
    return differences.mean(axis=1) - half, differences.mean(axis=1) + half


def hodges_lehmann(differences: Floats) -> Bounds:
    """Walsh averages between which the exact signed-rank test does not reject (Hollander and Wolfe 1973, section 3.3).

    Below six tasks no value can be rejected: the interval is the whole line.
    """
    n = differences.shape[1]
    limit = int(critical_values(0.05, 500)[n])
    if limit < 0:
        whole = np.full(len(differences), np.inf)
        return -whole, whole
    i, j = np.triu_indices(n)
    low, high = [], []
    for start in range(0, len(differences), CHUNK):
        d = differences[start : start + CHUNK]
        places = [limit, len(i) - 1 - limit]
        walsh = np.partition((d[:, i] + d[:, j]) / 2, places, axis=1)
        low.append(walsh[:, places[0]])
        high.append(walsh[:, places[1]])
    return np.concatenate(low), np.concatenate(high)


INTERVALS: dict[str, Callable[[Floats], Bounds]] = {
    "bootstrap, percentile": percentile,
    "bootstrap, BCa": bca,
    "bootstrap-t": bootstrap_t,
    "t": t_interval,
    "Hodges-Lehmann": hodges_lehmann,
}


def covers(bounds: Bounds, value: float) -> Bools:
    """Return whether each interval holds `value`, forgiving float noise."""
    return np.asarray((bounds[0] <= value + 1e-12) & (bounds[1] >= value - 1e-12))
