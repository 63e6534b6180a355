"""Tasks that are pairs of texts with a truth: pair classification (a label) and STS (a grade)."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.arrays import Floats
from evaluation.tasks.task_data import TaskData
from records.streams import stream_seed
from representation.geometry.vector_geometry import unit

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
        return average_precision(similarity, self.truth > 0, counts)


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


def ranks(values: Floats, counts: Floats) -> Floats:
    """Return [R, n] average rank of each pair's value [n] in each sample [R, n].

    Equal to scipy's `rankdata` of the sample written out; a pair that was not drawn has some rank too, of no meaning.
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[:, order], axis=1)
    first, last = _ties(values[order])
    before = np.concatenate([np.zeros((len(counts), 1)), below], axis=1)[:, first]
    placed = np.empty_like(counts)
    placed[:, order] = (before + below[:, last] + 1) / 2
    return placed


def _ties(ordered: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and last place of the group of equal values that each place belongs to."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.concatenate([starts[1:], [len(ordered)]]) - 1
    group = np.repeat(np.arange(len(starts)), ends - starts + 1)
    return starts[group], ends[group]


def spearman(rows: Floats, counts: Floats) -> Floats:
    """Return [R, K, K] Spearman correlations of the rows [K, n] in each sample; NaN where a row does not vary."""
    placed = np.stack([ranks(row, counts) for row in rows], axis=1)  # [R, K, n]
    weights = counts[:, None, :] / counts.sum(axis=1)[:, None, None]
    centred = placed - (placed * weights).sum(axis=2, keepdims=True)
    covariance = (centred * weights) @ centred.swapaxes(1, 2)
    spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    spread = np.where(spread > 1e-6, spread, np.nan)  # ranks that vary are far above what rounding leaves
    correlations: Floats = covariance / (spread[:, :, None] * spread[:, None, :])
    return correlations


def average_precision(similarity: Floats, truth: NDArray[np.bool_], counts: Floats) -> Floats:
    """Return [R] average precision of `similarity` [n] for `truth` [n] in each sample, ties together as in sklearn.

    NaN where a sample holds no true pair.
    """
    order = np.argsort(-similarity, kind="stable")
    drawn, true = counts[:, order], (counts * truth)[:, order]
    _, last = _ties(similarity[order])
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.cumsum(true, axis=1)[:, last] / np.cumsum(drawn, axis=1)[:, last]
        mean: Floats = np.where(true > 0, true * precision, 0.0).sum(axis=1) / true.sum(axis=1)
    return mean


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the percentile interval of bootstrap values [R]; NaN among them are left out."""
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
