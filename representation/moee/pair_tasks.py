"""Tasks that are pairs of texts with a truth: pair classification (a label) and STS (a grade)."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.arrays import Floats
from analysis.statistics.items import weighted_average_precision, weighted_midranks
from encoders.vector_geometry import unit
from evaluation.tasks.task_data import TaskData
from records.streams import stream_seed

TRUTH = {"PairClassification": "labels", "STS": "score"}
MEASURE = {
    "PairClassification": "average precision of the cosine similarity",
    "STS": "Spearman correlation of the cosine similarity with the grade",
}


@dataclass(frozen=True)
class PairTask:
    """`left`, `right`: n texts each, all of the side of queries; `truth`: [n]; `units`: [n], 0 to U-1.

    Pairs with the same left text are one unit, since they are not drawn independently of one another.
    """

    name: str
    type: str
    left: list[str]
    right: list[str]
    truth: Floats
    units: NDArray[np.int64]

    @property
    def texts(self) -> list[str]:
        """The distinct texts, in order."""
        return list(dict.fromkeys([*self.left, *self.right]))

    def similarities(self, vectors: NDArray[np.float32]) -> Floats:
        """[n] cosine similarities of the pairs; vectors: [texts, E], in the order of `texts`."""
        place, directions = {text: i for i, text in enumerate(self.texts)}, unit(vectors)
        left, right = (directions[[place[text] for text in side]] for side in (self.left, self.right))
        cosines: Floats = np.einsum("ne,ne->n", left, right)
        return cosines

    def score(self, similarity: Floats, counts: Floats) -> Floats:
        """[R] the score that `MEASURE` names, in each sample of counts [R, n]."""
        if self.type == "STS":
            return spearman(np.stack([similarity, self.truth]), counts)[:, 0, 1]
        true = (self.truth > 0).astype(float)
        precision = weighted_average_precision(similarity, true, counts)
        return np.where(counts @ true > 0, precision, np.nan)  # without a true pair there is none


def pair_tasks(tasks: Iterable[TaskData], most: int, seed: int) -> list[PairTask]:
    """Return the tasks of pairs among `tasks`, each with at most `most` pairs: a sample of whole units."""
    return [_read(data, most, seed) for data in tasks if data.type in TRUTH]


def size(tasks: Sequence[PairTask]) -> str:
    """Return `320 pairs of 2 tasks`."""
    return f"{sum(len(t.left) for t in tasks):,} pairs of {len(tasks)} task{'s' * (len(tasks) > 1)}"


def measures(tasks: Sequence[PairTask]) -> str:
    """Return the scores of `tasks` in words."""
    return "; ".join(dict.fromkeys(MEASURE[task.type] for task in tasks))


def _read(data: TaskData, most: int, seed: int) -> PairTask:
    """Read the task's last split, the test part."""
    (*_, columns) = data.content.values()
    by_left: dict[str, list[Any]] = {}
    for row in zip(columns["sentence1"], columns["sentence2"], columns[TRUTH[data.type]], strict=True):
        by_left.setdefault(row[0], []).append(row)
    names = sorted(by_left)
    random.Random(stream_seed(seed, f"pairs {data.name}")).shuffle(names)
    units: list[list[Any]] = []
    count = 0
    for name in names:
        if count + len(by_left[name]) <= most:
            units.append(by_left[name])
            count += len(by_left[name])
    left, right, truth = (list(column) for column in zip(*chain.from_iterable(units), strict=True))
    numbers = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    return PairTask(data.name, data.type, left, right, np.array(truth, dtype=float), numbers)


def once(n: int) -> Floats:
    """Return [1, n]: every pair once, which is no sample but the data."""
    return np.ones((1, n))


def draws(units: NDArray[np.int64], replicates: int, seed: int) -> Floats:
    """Return [R, n] how often each pair is there when whole units are drawn with replacement, as many as there are.

    units: [n] the unit of each pair, 0 to U-1. Pairs that share a text are one unit, since they are no two facts.
    """
    rng = np.random.default_rng(seed)
    number = int(units.max()) + 1
    drawn = rng.multinomial(number, np.full(number, 1 / number), size=replicates)
    return drawn[:, units].astype(float)


def left_out(units: NDArray[np.int64]) -> Floats:
    """Return [U, n] the data without each unit in turn, for the jackknife."""
    return (np.arange(int(units.max()) + 1)[:, None] != units).astype(float)


def spearman(rows: Floats, counts: Floats) -> Floats:
    """Return [R, K, K] Spearman correlations of the rows [K, n] in each sample; NaN where a row does not vary."""
    placed = np.stack([weighted_midranks(row, counts) for row in rows], axis=1)  # [R, K, n]
    weights = counts[:, None, :] / counts.sum(axis=1)[:, None, None]
    centred = placed - (placed * weights).sum(axis=2, keepdims=True)
    covariance = (centred * weights) @ centred.swapaxes(1, 2)
    spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    spread = np.where(spread > 1e-6, spread, np.nan)  # ranks that vary are far above what rounding leaves
    correlations: Floats = covariance / (spread[:, :, None] * spread[:, None, :])
    return correlations
