"""Family-wise errors: five equally good designs, all ten pairs or four against one.

Each procedure is a function of scores [reps, n, 5] that returns whether it rejects anything, [reps]; with `better`
designs at the end only pairs of the others count, since only they are truly equal.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.correction import holm
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.null_tests import t_test

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
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
    """Whether any two mean ranks differ by the critical difference (Nemenyi 1963; Demsar 2006)."""
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
