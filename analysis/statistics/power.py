"""Power of the primary test, at these tasks and any number of seeds, from the components of variance that runs show.

Given the components, the parts of the squared error are multiples of chi-square variables. So the critical difference
is drawn, as often as DRAWS says and always alike, and the chance to exceed it follows from the normal curve. That the
components are estimates, too, is not in it: those of three seeds are rough.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, ndtr, stdtrit
from scipy.stats import qmc

from analysis.statistics.arrays import Floats, Ints
from analysis.statistics.seeds import FEWEST_SEEDS, OTHERS, Spreads, squared_error

TARGET = 0.8  # chance of a difference that counts as detectable
DRAWS = 1024  # with them a detectable difference is within 1.5 % of its limit at a level of 0.002
HALVINGS = 18  # of the search: 1 part in 260,000 of its first step


@dataclass(frozen=True)
class Components:
    """Variances of P pairs: `of_tasks` [P] of the tasks' true differences; of either design, [2, P], `of_seeds` of its
    run means over the `tasks`, and `of_rest` of task x seed; `pooled`: of run means, of all designs."""

    tasks: int
    of_tasks: Floats
    of_seeds: Floats
    of_rest: Floats
    pooled: Floats

    def critical(self, level: float, seeds: Any) -> tuple[Floats, Floats]:
        """Return critical differences [DRAWS, ..., P] at `level`, and the true standard error [..., P] of a difference.

        seeds: of either design, [2] or [2, ..., P].
        """
        s, tasks = np.asarray(seeds, dtype=np.float64), self.tasks
        rest = [of / (tasks * n) for of, n in zip(self.of_rest, s, strict=True)]
        own = [of / n for of, n in zip(self.of_seeds, s, strict=True)]
        of_tasks = self.of_tasks / tasks + sum(rest)
        df = [tasks - 1.0, *(s - 1), *((tasks - 1) * (s - 1))]
        u = qmc.Halton(len(df), seed=0).random(DRAWS).T.reshape(len(df), DRAWS, *[1] * np.ndim(sum(own)))
        by_task, one, other, *of_rest = (
            part * chdtri(free, of) / free for part, free, of in zip([of_tasks, *own, *rest], df, u, strict=True)
        )
        limits = []
        for others in (0, OTHERS):
            free = [n - 1 + others for n in s]
            drawn = [
                np.where(part > 0, (others * self.pooled / n + (n - 1) * part) / (n - 1 + others), part)
                for part, n in zip((one, other), s, strict=True)
            ]
            squared, freedom = squared_error(([by_task], [df[0]]), (drawn, free), (of_rest, df[3:]))
            limits.append(stdtrit(freedom, 1 - level / 2) * np.sqrt(squared))
        return np.maximum(*limits), np.sqrt(of_tasks + sum(own) - sum(rest))


def components(of: Spreads, first: Ints, second: Ints) -> Components:
    """Return the components of designs `second` minus `first` [P]; nan where one has fewer than two runs."""
    tasks = of.means.shape[-1]
    of_seeds, of_rest = of.of_seeds * of.counts, of.of_rest * of.counts * tasks
    between = (of.means[second] - of.means[first]).var(axis=1, ddof=1)
    seen = tasks * (of.of_rest[first] + of.of_rest[second])
    seeds, rest = (np.stack([part[first], part[second]]) for part in (of_seeds, of_rest))
    pooled = np.nan_to_num(of.pooled)  # 0 where unknown: then the designs' own variances are the wider
    return Components(tasks, np.maximum(0.0, between - seen), seeds, rest, pooled)


def power(of: Components, difference: Any, level: float, seeds: Any) -> Floats:
    """Return the chance [..., P] to find true differences at `level`. seeds: as `Components.critical` takes them."""
    return _chance(difference, *of.critical(level, seeds))


def _chance(difference: Any, critical: Floats, error: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        tails = ndtr((difference - critical) / error) + ndtr((-difference - critical) / error)
    return np.asarray(tails.mean(axis=0))


def detectable(of: Components, level: float, seeds: Any) -> Floats:
    """Return the smallest differences [..., P] found at `level` with a chance of TARGET; nan below FEWEST_SEEDS."""
    s = np.asarray(seeds, dtype=np.float64)
    s = np.where((s < FEWEST_SEEDS).any(axis=0), np.nan, s)
    critical, error = of.critical(level, s)
    low, step = np.zeros_like(error), critical.max(axis=0) + 2 * error
    for _ in range(HALVINGS):
        step = step / 2
        low = np.where(_chance(low + step, critical, error) < TARGET, low + step, low)
    return np.where(np.isnan(error), np.nan, low + step)
