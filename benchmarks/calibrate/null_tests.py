"""Tests of two designs, and procedures over five equally good ones: all ten pairs or four against one.

A test is a function of differences [reps, n] that returns p [reps]. A procedure is a function of scores [reps, n, 5]
that returns whether it rejects anything, [reps].
"""

from collections.abc import Callable

import numpy as np
from scipy.special import stdtr

from analysis.settings import CHOICES
from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.correction import holm, passes
from analysis.statistics.intervals import mean_and_error
from analysis.statistics.ranks import nemenyi_distance, rank_error
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.calibrate.null_worlds import BLOCK

ALPHA = 0.05
ENUMERATED_UP_TO = 11  # tasks: 2^10 patterns
FLIPS = 1999
CHUNK = 1000  # repetitions whose flips are shared


def signed_rank_with(zeros: str) -> Callable[[Floats], Floats]:
    """Return the exact signed-rank test with that handling of zeros, as `analysis` runs it."""
    return lambda differences: signed_rank(differences, zeros, 12).p


def sign_test(differences: Floats) -> Floats:
    """Exact binomial test of the signs; zeros dropped (Dixon and Mood 1946)."""
    from scipy.stats import binom

    plus, minus = (differences > 0).sum(axis=1), (differences < 0).sum(axis=1)
    return np.asarray(np.minimum(1.0, 2 * binom.cdf(np.minimum(plus, minus), plus + minus, 0.5)))


def permutation(differences: Floats) -> Floats:
    """Paired permutation test of the mean (Fisher 1935): all sign patterns up to 11 tasks, else 1,999 random ones."""
    reps, n = differences.shape
    exact, p = n <= ENUMERATED_UP_TO, np.empty(reps)
    rng = np.random.default_rng(0)
    signs = 1.0 - 2.0 * ((np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1) if exact else None
    for start in range(0, reps, CHUNK):
        d = differences[start : start + CHUNK]
        patterns = signs if signs is not None else rng.choice([-1.0, 1.0], size=(FLIPS, n))
        least = np.abs(d.sum(axis=1)) - 1e-10 * np.abs(d).sum(axis=1)  # sums equal but for rounding must tie
        as_large = (np.abs(d @ patterns.T) >= least[:, None]).sum(axis=1)
        p[start : start + CHUNK] = as_large / len(patterns) if exact else (as_large + 1) / (FLIPS + 1)
    return p


def t_test(differences: Floats) -> Floats:
    """Paired t test; p = 1 where all differences are zero."""
    mean, error = mean_and_error(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(np.abs(mean) / error, nan=0.0, posinf=np.inf)
    return np.asarray(2 * stdtr(differences.shape[1] - 1, -t))


def block_means(differences: Floats) -> Floats:
    """Return [reps, blocks]: the mean of each block of four tasks, which is what `cluster=` tests."""
    starts = np.arange(0, differences.shape[1], BLOCK)
    sizes = np.diff(np.r_[starts, differences.shape[1]])
    return np.asarray(np.add.reduceat(differences, starts, axis=1) / sizes)


TESTS: dict[str, Callable[[Floats], Floats]] = {
    **{f"signed-rank, {zeros}": signed_rank_with(zeros) for zeros in CHOICES["zeros"]},
    "sign test": sign_test,
    "permutation of the mean": permutation,
    "paired t": t_test,
}
WILCOX = TESTS["signed-rank, wilcox"]


def _any_after_holm(p: Floats, counted: slice | Bools = slice(None)) -> Bools:
    """Return [reps]: is one of the `counted` tests among p [reps, tests] significant after Holm?"""
    return np.asarray(passes(np.apply_along_axis(holm, 1, p)[:, counted], ALPHA).any(axis=1))


def pairwise(scores: Floats, test: Callable[[Floats], Floats], control: bool = False, better: int = 0) -> Bools:
    """Test all pairs, or those with the first design, correct by Holm, and say whether an equal pair was rejected.

    The last `better` designs are better than the others, so pairs with them do not count.
    """
    reps, n, k = scores.shape
    first, second = np.triu_indices(k, k=1)
    if control:
        first, second = first[first == 0], second[first == 0]
    differences = (scores[:, :, second] - scores[:, :, first]).transpose(0, 2, 1)
    return _any_after_holm(test(differences.reshape(-1, n)).reshape(reps, len(first)), second < k - better)


def mean_ranks(scores: Floats) -> tuple[Floats, Floats]:
    """Return mean ranks over tasks [reps, k] (midranks) and the tie correction of Friedman's statistic [reps]."""
    from scipy.stats import rankdata

    _, n, k = scores.shape
    ranks = rankdata(np.round(scores, 12), axis=2)
    spread = ((ranks - (k + 1) / 2) ** 2).sum(axis=(1, 2)) / (n * k * (k * k - 1) / 12)
    return ranks.mean(axis=1), spread


def friedman(scores: Floats) -> tuple[Floats, Floats]:
    """Return p of Friedman's chi-square and of Iman and Davenport's F (1980), [reps] each."""
    from scipy.stats import chi2, f

    _, n, k = scores.shape
    ranks, spread = mean_ranks(scores)
    statistic = 12 * n / (k * (k + 1)) * ((ranks - (k + 1) / 2) ** 2).sum(axis=1) / spread
    with np.errstate(divide="ignore"):
        iman = (n - 1) * statistic / np.maximum(n * (k - 1) - statistic, 0)
    return np.asarray(chi2.sf(statistic, k - 1)), np.asarray(f.sf(iman, k - 1, (k - 1) * (n - 1)))


def nemenyi(scores: Floats) -> Bools:
    """Return whether any two mean ranks differ by the critical difference (Nemenyi 1963; Demsar 2006)."""
    _, n, k = scores.shape
    return np.asarray(np.ptp(mean_ranks(scores)[0], axis=1) >= nemenyi_distance(k, n, ALPHA))


def holm_on_ranks(scores: Floats) -> Bools:
    """Mean ranks of four designs against the first, normal p (Demsar 2006), Holm."""
    from scipy.stats import norm

    _, n, k = scores.shape
    ranks = mean_ranks(scores)[0]
    return _any_after_holm(2 * norm.sf(np.abs(ranks[:, 1:] - ranks[:, :1]) / rank_error(k, n)))


PROCEDURES: dict[str, Callable[[Floats], Bools]] = {
    "signed-rank, Holm, 10 pairs": lambda s: pairwise(s, WILCOX),
    "signed-rank, Holm, 4 against one": lambda s: pairwise(s, WILCOX, control=True),
    "paired t, Holm, 10 pairs": lambda s: pairwise(s, t_test),
    "Friedman, chi-square": lambda s: friedman(s)[0] <= ALPHA,
    "Friedman, Iman-Davenport": lambda s: friedman(s)[1] <= ALPHA,
    "Nemenyi, 10 pairs": nemenyi,
    "mean ranks, Holm, 4 against one": holm_on_ranks,
}
