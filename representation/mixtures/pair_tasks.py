"""Tasks that are pairs of texts with a truth: pair classification (a label) and STS (a grade)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from records.streams import stream_seed
from representation.mixtures.resampled import Floats, average_precision, spearman

if TYPE_CHECKING:
    from evaluation.task_data import TaskData

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
        place = {text: i for i, text in enumerate(self.texts)}
        unit = vectors.astype(np.float64)
        unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
        found: Floats = np.einsum("ne,ne->n", unit[[place[t] for t in self.left]], unit[[place[t] for t in self.right]])
        return found

    def score(self, similarity: Floats, counts: Floats) -> Floats:
        """[R] the score that `MEASURE` names, in each sample of counts [R, n]."""
        if self.type == "STS":
            return spearman(np.stack([similarity, self.truth]), counts)[:, 0, 1]
        return average_precision(similarity, self.truth > 0, counts)


def pair_tasks(tasks: Sequence["TaskData"], most: int, seed: int) -> list[PairTask]:
    """Return the tasks of pairs among `tasks`, each with at most `most` pairs: a sample of whole units."""
    return [_read(data, most, seed) for data in tasks if data.type in TRUTH]


def said(tasks: Sequence[PairTask]) -> str:
    """`320 pairs of 2 tasks`."""
    return f"{sum(len(t.left) for t in tasks):,} pairs of {len(tasks)} task{'s' * (len(tasks) > 1)}"


def measures(tasks: Sequence[PairTask]) -> str:
    """What the scores of `tasks` are."""
    return "; ".join(dict.fromkeys(MEASURE[task.type] for task in tasks))


def _read(data: "TaskData", most: int, seed: int) -> PairTask:
    """Of the task's last split, the test part."""
    (*_, columns) = data.content.values()
    rows = list(zip(columns["sentence1"], columns["sentence2"], columns[TRUTH[data.type]], strict=True))
    by_left: dict[str, list[Any]] = {}
    for row in rows:
        by_left.setdefault(row[0], []).append(row)
    names = sorted(by_left)
    random.Random(stream_seed(seed, f"pairs {data.name}")).shuffle(names)
    kept: list[Any] = []
    units: list[int] = []
    for name in names:
        if len(kept) + len(by_left[name]) <= most:
            units += [max(units, default=-1) + 1] * len(by_left[name])
            kept += by_left[name]
    left, right, truth = (list(column) for column in zip(*kept, strict=True))
    return PairTask(data.name, data.type, left, right, np.array(truth, dtype=float), np.array(units))
