"""Stability over prompts: spread of the score, agreement of similarities, each with a jackknife interval over pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from representation.moee.pair_tasks import Floats, PairTask, spearman

SLICE = 100  # samples ranked at a time, so that 28 rows of 1,400 pairs take 30 MB
NORMAL = 1.959964  # quantile of 97.5 %
Key = tuple[str, str]  # (reading or two of them, statistic)


@dataclass(frozen=True)
class Value:
    """A statistic on the data, and its jackknife interval (95 %).

    A bootstrap would not do for the spread over prompts: repeated pairs add noise of their own to every prompt's score,
    and a spread of .003 was seen below an interval of .004 to .024.
    """

    value: float
    low: float
    high: float


def measured(task: PairTask, similarities: Mapping[str, Floats], counts: Floats) -> dict[Key, Floats]:
    """Return (reading, statistic) -> [R] in each sample. similarities: reading -> [prompts, n].

    "mean", "spread": mean and standard deviation (n - 1) of the score over prompts;
    "agreement": mean Spearman correlation of the pairs' similarities between two prompts; for the key "HS-RW" between
    HS and RW, under the same prompt and under others.
    """
    found: dict[Key, Floats] = {}
    for reading, rows in similarities.items():
        scores = np.stack([task.score(row, counts) for row in rows])
        found[reading, "mean"], found[reading, "spread"] = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    parts = [agreements(similarities, counts[i : i + SLICE]) for i in range(0, len(counts), SLICE)]
    return found | {(key, "agreement"): np.concatenate([part[key] for part in parts]) for key in parts[0]}


def agreements(similarities: Mapping[str, Floats], counts: Floats) -> dict[str, Floats]:
    """Return reading -> [R] mean correlation between two of its prompts, and "HS-RW" across the readings."""
    names = list(similarities)
    prompts = len(similarities[names[0]])
    matrices = spearman(np.concatenate([similarities[name] for name in names]), counts)
    apart = ~np.eye(prompts, dtype=bool)
    at = {name: slice(k * prompts, (k + 1) * prompts) for k, name in enumerate(names)}
    found = {name: matrices[:, at[name], at[name]][:, apart].mean(axis=1) for name in names}
    if {"HS", "RW"} <= at.keys():
        found["HS-RW"] = matrices[:, at["HS"], at["RW"]].mean(axis=(1, 2))
    return found


def over_tasks(each: Sequence[Mapping[Key, Floats]]) -> dict[Key, Floats]:
    """Return the mean over tasks of every statistic, each task counting once, and the parts of its standard error.

    each: of each task (key) -> [1 + U], on the data, then without each unit. Returned: [1 + all units], the value, then
    parts whose root of the sum of squares is the standard error. Values and parts of two statistics may be subtracted.
    """
    found = {}
    for key in each[0]:
        without = [of_task[key][1:] for of_task in each]
        parts = [np.sqrt((len(x) - 1) / len(x)) * (x - x.mean()) / len(each) for x in without]
        found[key] = np.concatenate([[np.mean([of_task[key][0] for of_task in each])], *parts])
    return found


def value(parts: Floats, floor: float = -np.inf) -> Value:
    """Return a statistic with its interval. parts: as `over_tasks` gives them; floor: the least possible value."""
    reach = NORMAL * float(np.sqrt((parts[1:] ** 2).sum()))
    return Value(float(parts[0]), max(float(parts[0]) - reach, floor), float(parts[0]) + reach)


def difference(found: Mapping[Key, Floats], statistic: str, first: str = "RW", second: str = "HS") -> Value:
    """Return first minus second, on the same pairs."""
    return value(found[first, statistic] - found[second, statistic])


def correlation_matrix(similarities: Mapping[str, Floats]) -> Floats:
    """Return [K, K] Spearman correlations between all prompts of all readings, in order, on all pairs."""
    rows = np.concatenate(list(similarities.values()))
    return spearman(rows, np.ones((1, rows.shape[1])))[0]
