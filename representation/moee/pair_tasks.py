"""Tasks that are pairs of texts with a truth: pair classification (a label) and STS (a grade)."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from analysis.statistics.arrays import Floats
from cli.errors import UserError
from evaluation.tasks.task_data import TaskData
from poolers.shared.vector_geometry import unit
from records.files import stream_seed

TRUTH = {"PairClassification": "labels", "STS": "score"}
SCORE = "Average precision of the cosine similarity, or its Spearman correlation with the grade (STS)"


@dataclass(frozen=True)
class PairTask:
    """`left`, `right`: n texts each, all of the side of queries; `truth`: [n]."""

    name: str
    type: str
    left: list[str]
    right: list[str]
    truth: Floats

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

    def score(self, similarity: Floats) -> float:
        """Return the score that `SCORE` names of similarities [n]."""
        if self.type == "STS":
            return float(spearmanr(similarity, self.truth).statistic)
        return float(average_precision_score(self.truth > 0, similarity))


def pair_tasks(tasks: Iterable[TaskData], most: int, seed: int) -> list[PairTask]:
    """Return the tasks of pairs among `tasks`, each with at most `most` pairs.

    All pairs with one left text are drawn together, since they are not drawn independently of one another.
    """
    return [_read(data, most, seed) for data in tasks if data.type in TRUTH]


def size(tasks: Sequence[PairTask]) -> str:
    """Return `320 pairs of 2 tasks`."""
    return f"{sum(len(t.left) for t in tasks):,} pairs of {len(tasks)} task{'s' * (len(tasks) > 1)}"


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
    if not units:
        raise UserError(f"{data.name}: each left text has more pairs than the {most} that are allowed. Allow more.")
    left, right, truth = (list(column) for column in zip(*chain.from_iterable(units), strict=True))
    return PairTask(data.name, data.type, left, right, np.array(truth, dtype=float))
