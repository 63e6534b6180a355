"""Family-wise errors: five equally good designs, all ten pairs or four against one.

Each procedure is a function of scores [reps, n, 5] that returns whether it rejects anything, [reps]; with `better`
designs at the end only pairs of the others count, since only they are truly equal.
"""

from collections.abc import Callable

import numpy as np

from analysis.settings import CHOICES
from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.correction import holm
from analysis.statistics.wilcoxon import signed_rank

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
    from scipy.special import stdtr

    n = differences.shape[1]
    error = differences.std(axis=1, ddof=1) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(differences.mean(axis=1)) / error
    return np.asarray(2 * stdtr(n - 1, -np.nan_to_num(t, nan=0.0, posinf=np.inf)))


def all_tests() -> dict[str, Callable[[Floats], Floats]]:
    """Return the tests by name; the handlings of zeros are those that the analysis offers."""
    signed = {f"signed-rank, {zeros}": signed_rank_with(zeros) for zeros in CHOICES["zeros"]}
    return {**signed, "sign test": sign_test, "permutation of the mean": permutation, "paired t": t_test}


ALPHA = 0.05


def pairwise(scores: Floats, test: Callable[[Floats], Floats], control: bool = False, better: int = 0) -> Bools:
    """Test all pairs, or those with the first design, correct by Holm, and say whether an equal pair was rejected."""
    reps, n, k = scores.shape
    first, second = np.triu_indices(k, k=1)
    if control:
        first, second = first[first == 0], second[first == 0]
    differences = (scores[:, :, second] - scores[:, :, first]).transpose(0, 2, 1)
    p = test(differences.reshape(-1, n)).reshape(reps, len(first))
    equal = second < k - better
    return np.asarray((np.apply_along_axis(holm, 1, p)[:, equal] <= ALPHA * (1 + 1e-9)).any(axis=1))


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
    from scipy.stats import studentized_range

    _, n, k = scores.shape
    critical = studentized_range.ppf(1 - ALPHA, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n))
    return np.asarray(np.ptp(mean_ranks(scores)[0], axis=1) >= critical)


def holm_on_ranks(scores: Floats) -> Bools:
    """Mean ranks of four designs against the first, normal p (Demsar 2006), Holm."""
    from scipy.stats import norm

    _, n, k = scores.shape
    ranks = mean_ranks(scores)[0]
    p = 2 * norm.sf(np.abs(ranks[:, 1:] - ranks[:, :1]) / np.sqrt(k * (k + 1) / (6 * n)))
    return np.asarray((np.apply_along_axis(holm, 1, p) <= ALPHA).any(axis=1))


def _signed(differences: Floats) -> Floats:
    return signed_rank(differences, "wilcox", 12).p


PROCEDURES: dict[str, Callable[[Floats], Bools]] = {
    "signed-rank, Holm, 10 pairs": lambda s: pairwise(s, _signed),
    "signed-rank, Holm, 4 against one": lambda s: pairwise(s, _signed, control=True),
    "paired t, Holm, 10 pairs": lambda s: pairwise(s, t_test),
    "Friedman, chi-square": lambda s: friedman(s)[0] <= ALPHA,
    "Friedman, Iman-Davenport": lambda s: friedman(s)[1] <= ALPHA,
    "Nemenyi, 10 pairs": nemenyi,
    "mean ranks, Holm, 4 against one": holm_on_ranks,
}
