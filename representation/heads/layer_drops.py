"""Scores of a run with each of its layers left out, by mteb, from one forward pass a text."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.candidates import Candidate
from evaluation.embedding_cache import Encoder, Store
from evaluation.embedding_memory import EmbeddingMemory
from poolers.multilayer import MultiLayerTrainable
from representation.heads.layer_left_out import LayerLeftOut, Reductions
from representation.student import student

if TYPE_CHECKING:
    import pandas as pd

    from evaluation.benchmarks import TaskSet
    from representation.subject import Subject

FOLDER = "layers_left_out"  # in the cache: among a study's scores they would be taken for designs of it
LEVEL = 0.95
WHOLE = "none"  # in the place of a layer's number


@dataclass(frozen=True)
class LeftOutCandidate(Candidate):
    """A run without a layer; vectors are made from what is held of the run and are not kept on disk."""

    encoder: LayerLeftOut | None = None

    def load(self) -> Encoder:
        """Return it."""
        assert self.encoder is not None
        return self.encoder

    def store(self, encoder: Encoder, cache_dir: Path | None) -> Store:
        """Return an empty store: distinct texts of a task are computed once all the same."""
        return EmbeddingMemory()


def layer_drops(subject: "Subject", tasks: "TaskSet", settings: dict[str, Any]) -> "pd.DataFrame":
    """Return one row a (layer, task): `layer` "none" for the whole encoder, else number of the one left out, from 1.

    Columns layer, type, task, score. Scores lie in the cache, so that a second command finds them.
    """
    import pandas as pd

    from evaluation.scoring import Options, score

    rows = [
        (layer, kind, task, value)
        for layer, candidate in _each(subject, settings)
        for task, (kind, value) in score(candidate, tasks.tasks, Options(subject.instructions)).scores.items()
    ]
    return pd.DataFrame(rows, columns=["layer", "type", "task", "score"])


def _each(subject: "Subject", settings: dict[str, Any]) -> Iterator[tuple[str, Candidate]]:
    reductions = Reductions(subject.encoder())
    pooler = reductions.pooler
    assert isinstance(pooler, MultiLayerTrainable)
    own = replace(subject.candidate, results=Path(settings["cache_dir"]) / FOLDER)
    numbers = {None: WHOLE} | {i: str(layer + 1) for i, layer in enumerate(pooler.layers)}
    for left_out, name in numbers.items():
        held = {key: getattr(own, key) for key in own.__dataclass_fields__}
        yield name, LeftOutCandidate(**held, encoder=LayerLeftOut(reductions, left_out))


def drops(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Return one row a (type, layer): score of the whole encoder, `drop` = whole - left out, its interval, tasks.

    scores: as of `layer_drops`; of several seeds each task has the mean. Student's t over tasks, nan with fewer than
    two. The type "All" is over all tasks, where there are several types. A drop above zero: the layer was of use.
    """
    import pandas as pd

    table = scores.pivot_table(index="task", columns="layer", values="score")  # the mean over seeds
    kinds = scores.drop_duplicates("task").set_index("task")["type"]
    numbers = [layer for layer in dict.fromkeys(scores["layer"]) if layer != WHOLE]
    groups = {kind: list(kinds.index[kinds == kind]) for kind in dict.fromkeys(kinds)}
    groups |= {"All": list(kinds.index)} if len(groups) > 1 else {}
    rows = []
    for kind, tasks in groups.items():
        for layer in numbers:
            difference = (table.loc[tasks, WHOLE] - table.loc[tasks, layer]).to_numpy()
            low, high = student(difference, LEVEL)
            rows.append((kind, layer, table.loc[tasks, WHOLE].mean(), difference.mean(), low, high, len(tasks)))
    return pd.DataFrame(rows, columns=["type", "layer", "whole", "drop", "low", "high", "tasks"])
