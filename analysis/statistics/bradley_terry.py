"""Strengths of designs from who is ahead on each task: Bradley and Terry's model with Davidson's ties, and ranks."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from analysis.statistics.arrays import Floats, Ints, rounded

PSEUDO = 0.5  # wins each way that every two designs are given, so that who always wins has a finite strength
STEPS, TOLERANCE = 100, 1e-10


@dataclass(frozen=True)
class Strengths:
    """For k designs, each [k]. `points`: over tasks, designs beaten and half of those equalled (Borda's count).

    `strength`: log odds of being ahead of the average design; `low`, `high`: its interval; `rank`: 1 + the stronger
    designs; `rank_low`, `rank_high`: the ranks that a design may have, each set with the confidence of the level.
    """

    points: Floats
    strength: Floats
    low: Floats
    high: Floats
    rank: Ints
    rank_low: Ints
    rank_high: Ints


def strengths(scores: Floats, decimals: int = 12, level: float = 0.95) -> Strengths:
    """Fit P(i ahead of j) = e^s_i / (e^s_i + e^s_j + nu e^((s_i + s_j) / 2)) to scores [n tasks, k], sum of s zero.

    Bradley and Terry (1952); nu e^(...): ties (Davidson 1970), without any nu is 0. Maximum likelihood, half a win
    each way added to every pair. The designs of a task are no independent pairs, so the variance is the sandwich over
    tasks; where designs nearly always win it is too small, and the model's own is taken if larger. Student's quantiles
    with n - 1 degrees of freedom. A design's ranks (Mogstad et al. 2024): those that the designs leave it which are
    surely stronger or weaker, by intervals of its k - 1 differences that hold together (Bonferroni).
    """
    d = rounded(scores, decimals)
    n, k = d.shape
    ahead = np.stack([(d[:, [i]] > d).sum(axis=1) for i in range(k)], axis=1)
    equal = np.stack([(d[:, [i]] == d).sum(axis=1) - 1 for i in range(k)], axis=1)
    of_tasks = np.column_stack([ahead + equal / 2, equal.sum(axis=1) / 2])  # points of designs, and pairs that tie
    strength, information = _fit(of_tasks.sum(axis=0), n)
    model = np.linalg.pinv(information, hermitian=True)
    sandwich = model @ (n * np.cov(of_tasks, rowvar=False)) @ model

    parts = [v[:k, :k] for v in (sandwich, model)]
    centred = np.eye(k) - 1 / k
    error = np.sqrt(np.max([((centred @ v) * centred).sum(axis=1) for v in parts], axis=0))
    reach = stdtrit(n - 1, (1 + level) / 2) * error
    apart = strength[None] - strength[:, None]  # [i, j]: j less i
    squares = [np.diag(v)[:, None] + np.diag(v)[None] - 2 * v for v in parts]  # of the errors of differences
    sure = stdtrit(n - 1, 1 - (1 - level) / 2 / (k - 1)) * np.sqrt(np.maximum(0, np.max(squares, axis=0)))
    return Strengths(
        of_tasks[:, :k].sum(axis=0),
        strength,
        strength - reach,
        strength + reach,
        1 + (apart > 1e-9).sum(axis=1),
        1 + (apart > np.maximum(sure, 1e-9)).sum(axis=1),
        k - (apart < -np.maximum(sure, 1e-9)).sum(axis=1),
    )


def _fit(totals: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the strengths [k] and Fisher's information [k + 1, k + 1] of them and of log nu.

    totals: points of each design over n tasks, and tied pairs: all that the likelihood depends on. Newton's method, no
    step longer than 1; the likelihood is concave.
    """
    k, tied = len(totals) - 1, totals[-1] > 0
    at, games = np.zeros(k + 1), (n + 2 * PSEUDO) * (1 - np.eye(k))
    seen = totals + np.append(np.full(k, PSEUDO * (k - 1)), 0)
    for _ in range(STEPS):
        odds, tie = np.exp((at[:k, None] - at[None, :k]) / 2), np.exp(at[k]) * tied
        total = odds + 1 / odds + tie
        win, equal = odds / total, tie / total
        both = games * (win + win.T - (win - win.T) ** 2) / 4
        crossed = -games * (win - win.T) * equal / 2
        information = np.zeros((k + 1, k + 1))
        information[:k, :k] = np.diag(both.sum(axis=1)) - both
        information[:k, k] = information[k, :k] = crossed.sum(axis=1)
        information[k, k] = (games * equal * (1 - equal)).sum() / 2
        expected = np.append((games * (win + equal / 2)).sum(axis=1), (games * equal).sum() / 2)
        step = np.linalg.pinv(information, hermitian=True) @ (seen - expected)
        at += step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < TOLERANCE:
            break
    return at[:k] - at[:k].mean(), information
