"""How much a reading depends on the wording of the prompt: spread of its score, agreement of its similarities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from representation.pair_tasks import PairTask
from representation.resampled import Floats, interval, spearman

SLICE = 100  # bootstrap samples ranked at a time, so that 28 rows of 1,400 pairs take 30 MB
Key = tuple[str, str]  # (reading or two of them, statistic)


@dataclass(frozen=True)
class Value:
    """A statistic on the data, and its percentile interval over bootstrap samples (95 %)."""

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
    """The mean over tasks of every statistic [R], each task counting once."""
    return {key: np.mean([own[key] for own in each], axis=0) for key in each[0]}


def value(samples: Floats) -> Value:
    """samples: [1 + R], the data first, then bootstrap samples."""
    low, high = interval(samples[1:])
    return Value(float(samples[0]), low, high)


def difference(found: Mapping[Key, Floats], statistic: str, first: str = "RW", second: str = "HS") -> Value:
    """First minus second, sample by sample."""
    return value(found[first, statistic] - found[second, statistic])


def correlation_matrix(similarities: Mapping[str, Floats]) -> Floats:
    """[K, K] Spearman correlations between all prompts of all readings, in order, on all pairs."""
    rows = np.concatenate(list(similarities.values()))
    return spearman(rows, np.ones((1, rows.shape[1])))[0]
