"""A pair of designs as a meta-analysis of its tasks: what is left of their spread beyond the noise of items."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, fdtrc, stdtr, stdtrit

from analysis.statistics.arrays import Floats

HALVINGS = 60  # of the range of tau^2
LEAST = 1e-18  # a variance below it is what rounding leaves of equal items


@dataclass(frozen=True)
class RandomEffects:
    """For P pairs, each [P].

    `mean`, `error`, `low`, `high`, `p`: the mean over tasks, its standard error, interval and two-sided test;
    `tau`, `tau_low`, `tau_high`: the standard deviation between tasks of the true differences, and its interval;
    `new_low`, `new_high`: where the true difference on a further task is expected;
    `q`, `p_q`, `i2`: the weighted sum of squares without tau, the test of tau = 0, and the share of `q` that items do
    not explain.
    """

    mean: Floats
    error: Floats
    low: Floats
    high: Floats
    p: Floats
    tau: Floats
    tau_low: Floats
    tau_high: Floats
    new_low: Floats
    new_high: Floats
    q: Floats
    p_q: Floats
    i2: Floats


def random_effects(y: Floats, v: Floats, freedom: Floats, level: float = 0.95) -> RandomEffects:
    """Combine differences y [P, k tasks], whose sampling variances v [P, k] have `freedom` [k] degrees of freedom.

    Model: y_t = mean + task_t + noise_t, of variances tau^2 and v_t. tau^2 by Paule and Mandel (1982): where the
    weighted sum of squares is k - 1; its interval by the Q profile (Viechtbauer 2007). Mean weighted by
    w = 1 / (v + tau^2) with the error of Hartung and Knapp (2001) and Sidik and Jonkman (2002), never less than v make
    it (Roever, Knapp and Friede 2015), and Student's t of k - 1 degrees of freedom. With this tau^2 that error is
    1 / sqrt(sum w); where all v are alike and tau > 0, the interval is Student's of the plain mean. Interval of a
    further task: t times the root of tau^2 + error^2 (Higgins, Thompson and Spiegelhalter 2009; with k - 1 for their
    k - 2 degrees of freedom it is exact without noise of items). Test of tau = 0: Welch's (1951), which is Cochran's Q
    with F for chi-square, since v are estimated too. I^2 = (Q - (k - 1)) / Q (Higgins and Thompson 2002).

    A variance of zero, which few items leave where none differs, counts as the pair's smallest other one; a pair needs
    one above zero. Needs two tasks.
    """
    v = np.where(v > LEAST, v, np.where(v > LEAST, v, np.inf).min(axis=1, keepdims=True))
    df = y.shape[1] - 1
    _, weight, q = _weighted(y, v, np.zeros(len(y)))
    tau2 = _tau2(y, v, df)
    mean, whole, _ = _weighted(y, v, tau2)
    error = 1 / np.sqrt(whole)
    reach = stdtrit(df, (1 + level) / 2) * np.stack([error, np.sqrt(tau2 + error**2)])
    p, i2 = 2 * stdtr(df, -np.abs(mean) / error), 1 - df / np.maximum(q, df)
    tau_low, tau_high = (np.sqrt(_tau2(y, v, float(chdtri(df, (1 + side * level) / 2)))) for side in (-1, 1))
    p_q = _welch(q, v, weight, freedom)
    (low, new_low), (high, new_high) = mean - reach, mean + reach
    return RandomEffects(mean, error, low, high, p, np.sqrt(tau2), tau_low, tau_high, new_low, new_high, q, p_q, i2)


def _weighted(y: Floats, v: Floats, tau2: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean weighted by 1 / (v + tau^2), the sum of weights and the weighted sum of squares, each [P]."""
    weights = 1 / (v + tau2[:, None])
    whole = weights.sum(axis=1)
    mean = (weights * y).sum(axis=1) / whole
    return mean, whole, (weights * (y - mean[:, None]) ** 2).sum(axis=1)


def _tau2(y: Floats, v: Floats, target: float) -> Floats:
    """Return tau^2 [P] at which the weighted sum of squares is `target`; 0 where it is less at 0.

    It falls as tau^2 grows, and is less from the plain sum of squares / target on, so halving finds it.
    """
    low = np.zeros(len(y))
    high = ((y - y.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / target
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = _weighted(y, v, middle)[2] > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(_weighted(y, v, np.zeros(len(y)))[2] > target, high, 0.0)


def _welch(q: Floats, v: Floats, whole: Floats, freedom: Floats) -> Floats:
    """Return p [P] of equal means of tasks from Q, by the F distribution of Welch (1951)."""
    k = v.shape[1]
    doubt = ((1 - 1 / (v * whole[:, None])) ** 2 / freedom).sum(axis=1)
    f = q / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * doubt)
    return np.asarray(fdtrc(k - 1, (k**2 - 1) / (3 * doubt), f), dtype=np.float64)
