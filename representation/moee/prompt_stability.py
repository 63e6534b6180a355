"""Stability over prompts: spread of the score, agreement of similarities, each with a jackknife interval over pairs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from representation.moee.pair_tasks import Floats, PairTask, spearman

SLICE = 100  # samples ranked at a time, so that 28 rows of 1,400 pairs take 30 MB
NORMAL = 1.959964  # quantile of 97.5 %
FLOORS = {"mean": -1.0, "spread": 0.0, "agreement": -1.0}  # the least possible values
DIFFERENCE = "RW minus HS"
Key = tuple[str, str]  # (reading or two of them, statistic)


def measured(task: PairTask, similarities: Mapping[str, Floats], counts: Floats) -> dict[Key, Floats]:
    """Return (reading, statistic) -> [R] in each sample. similarities: reading -> [prompts, n].

    "mean", "spread": mean and standard deviation (n - 1) of the score over prompts;
    "agreement": mean Spearman correlation of the pairs' similarities between two prompts; for the key "HS-RW" between
    HS and RW, under the same prompt and under others.
    """
    statistics: dict[Key, Floats] = {}
    for reading, rows in similarities.items():
        scores = np.stack([task.score(row, counts) for row in rows])
        statistics[reading, "mean"], statistics[reading, "spread"] = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    parts = [agreements(similarities, counts[i : i + SLICE]) for i in range(0, len(counts), SLICE)]
    return statistics | {(key, "agreement"): np.concatenate([part[key] for part in parts]) for key in parts[0]}


def agreements(similarities: Mapping[str, Floats], counts: Floats) -> dict[str, Floats]:
    """Return reading -> [R] mean correlation between two of its prompts, and "HS-RW" across the readings."""
    prompts, names = len(next(iter(similarities.values()))), list(similarities)
    matrices = spearman(np.concatenate(list(similarities.values())), counts)
    blocks = matrices.reshape(len(counts), len(names), prompts, len(names), prompts)
    apart = ~np.eye(prompts, dtype=bool)
    means: dict[str, Floats] = {name: blocks[:, k, :, k][:, apart].mean(axis=1) for k, name in enumerate(names)}
    if {"HS", "RW"} <= means.keys():
        means["HS-RW"] = blocks[:, names.index("HS"), :, names.index("RW")].mean(axis=(1, 2))
    return means


def over_tasks(each: Sequence[Mapping[Key, Floats]]) -> dict[Key, Floats]:
    """Return the mean over tasks of every statistic, each task counting once, and the parts of its standard error.

    each: of each task (key) -> [1 + U], on the data, then without each unit. Returned: [1 + all units], the value, then
    parts whose root of the sum of squares is the standard error. Values and parts of two statistics may be subtracted.
    """
    means = {}
    for key in each[0]:
        without = [of_task[key][1:] for of_task in each]
        parts = [np.sqrt((len(x) - 1) / len(x)) * (x - x.mean()) / len(each) for x in without]
        means[key] = np.concatenate([[np.mean([of_task[key][0] for of_task in each])], *parts])
    return means


def stability(parts: Mapping[Key, Floats]) -> list[dict[str, Any]]:
    """Return per reading and statistic its value and the ends of its jackknife interval (95 %); last RW minus HS.

    parts: as `over_tasks` gives them; the difference is on the same pairs. A bootstrap would not do for the spread over
    prompts: repeated pairs add noise of their own to every prompt's score, and a spread of .003 was seen below an
    interval of .004 to .024.
    """
    apart = {(DIFFERENCE, statistic): parts["RW", statistic] - parts["HS", statistic] for statistic in FLOORS}
    rows = []
    for (reading, statistic), of_units in (*parts.items(), *apart.items()):
        value, reach = float(of_units[0]), NORMAL * float(np.sqrt((of_units[1:] ** 2).sum()))
        low = value - reach if reading == DIFFERENCE else max(value - reach, FLOORS[statistic])
        rows.append({"reading": reading, "statistic": statistic, "value": value, "low": low, "high": value + reach})
    return rows


def correlation_matrix(similarities: Mapping[str, Floats]) -> Floats:
    """Return [K, K] Spearman correlations between all prompts of all readings, in order, on all pairs."""
    rows = np.concatenate(list(similarities.values()))
    return spearman(rows, np.ones((1, rows.shape[1])))[0]
