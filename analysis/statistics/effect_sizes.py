"""Effect sizes of paired differences with intervals: the matched-pairs rank-biserial correlation, and d_z."""

import numpy as np
from scipy.special import nctdtrinc, ndtri

from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.intervals import mean_and_error
from analysis.statistics.wilcoxon import SignedRank

LARGEST = 1000.0  # t: scipy's inverse does not end at 1e6, and from here on the ends grow with t


def effect_sizes(differences: Floats, test: SignedRank, level: float = 0.95, decimals: int = 12) -> dict[str, Floats]:
    """Return column -> values [P]: the ends of the test's `rank_biserial`, and `d_z` of [P, n] with its ends.

    rank_biserial_low, _high: Wilson's (1927) interval of the share W+ / (W+ + W-) as if of 3 n / 4 trials, n the
    differences other than zero: without a difference it then has the variance 1 / (3 n) that the statistic has for many
    tasks, and it stays within -1 and 1. d_z: mean over standard deviation; sqrt(n) d_z is noncentral t with n - 1
    degrees of freedom for normal differences, and the ends are the noncentralities under which it would be as extreme
    (Cumming and Finch 2001). nan where nothing differs, or differences do not vary.
    """
    z, r = ndtri((1 + level) / 2), test.rank_biserial
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = z / (0.75 * (test.n_pairs - test.n_zero)) ** 0.5
        centre, reach = r / (1 + rest**2), rest * np.sqrt(1 - r**2 + rest**2) / (1 + rest**2)
    mean, error = mean_and_error(rounded(differences, decimals))
    n = differences.shape[1]
    t = np.divide(mean, error, out=np.full(len(mean), np.nan), where=error > 0)
    times = np.maximum(1.0, np.abs(t) / LARGEST)
    tails = ((1 + level) / 2, (1 - level) / 2)
    near, far = (times * np.asarray(nctdtrinc(n - 1, tail, np.abs(t) / times)) for tail in tails)
    low, high = np.where(t < 0, -far, near), np.where(t < 0, -near, far)
    sizes = {"d_z": t, "d_z_low": low, "d_z_high": high}
    scaled = {name: values / np.sqrt(n) for name, values in sizes.items()}
    return {"rank_biserial_low": centre - reach, "rank_biserial_high": centre + reach, **scaled}
