"""What does a multilayer head lose when it cannot read one of its layers? An intervention without training."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from encoders.text_encoder import Meter, TextEncoder
from encoders.tokens import Batch
from evaluation.candidates.candidates import Candidate
from evaluation.embeddings.cache import Encoder, Store
from evaluation.embeddings.memory import EmbeddingMemory
from poolers.multilayer import MultiLayerTrainable
from records.fingerprint import of_value
from representation.encoders_studied import over_seeds
from representation.figures import Look, Panel, Words, heat_panels, student
from representation.progress import each

if TYPE_CHECKING:
    import pandas as pd

    from analysis.drawings.drawing import Drawing
    from evaluation.tasks.chosen import TaskSet
    from representation.encoders_studied import Subject
    from representation.texts import Texts


HEAD_TEXTS = 512  # whose reductions run through the head at once


def vectors_without(pooler: MultiLayerTrainable, reductions: Tensor, left_out: int | None) -> Tensor:
    """[B, E] float32 of reductions [B, L, ...], as `pooler.reduce` made them, stacked.

    left_out: place of the layer whose keys have no weight in the softmax; the other weights grow in proportion. None:
    all layers are read.
    """
    kept = [i for i in range(reductions.shape[1]) if i != left_out]
    head = pooler.head
    if pooler.tokens == "all":
        parts = [reductions[:, i] for i in kept]
        return head.finish(head.merge([p[..., :-1] for p in parts], [p[..., -1:] for p in parts]))
    states = reductions if pooler.layer_weights is None else reductions + pooler.layer_weights
    return head(states[:, kept])


class Reductions:
    """What a multilayer head reads of each text, from one forward pass a text, kept while a run is looked at.

    One vector a layer: L x D float32 a text (6 KB with the embedded base, 0.5 MB with a decoder of 7 B parameters).
    """

    def __init__(self, encoder: TextEncoder) -> None:
        pooler = encoder.encoder.pooler
        assert isinstance(pooler, MultiLayerTrainable)
        self.encoder, self.pooler = encoder, pooler
        self._rows: dict[tuple[str, str], Tensor] = {}

    def of(self, texts: Sequence[str], instruction: str) -> Tensor:
        """[N, L, ...] on the CPU; texts that are not here yet are encoded."""
        lacking = [text for text in dict.fromkeys(texts) if (instruction, text) not in self._rows]
        for indices, rows in self.encoder.run(lacking, instruction, self._stacked):
            for i, row in zip(indices, rows, strict=True):
                self._rows[instruction, lacking[i]] = row.clone()
        return torch.stack([self._rows[instruction, text] for text in texts])

    def _stacked(self, batch: Batch) -> Tensor:
        states = self.encoder.encoder.states(batch)
        assert isinstance(states, list)
        return torch.stack(states, dim=1).cpu()


class LayerLeftOut:
    """A run's encoder without one of its layers, or with all of them, as evaluation takes an encoder."""

    def __init__(self, reductions: Reductions, left_out: int | None) -> None:
        own = reductions.encoder
        self.reductions, self.left_out = reductions, left_out
        self.fingerprint = of_value([own.fingerprint, "layer left out", left_out])
        self.settings, self.sources = own.settings, own.sources
        self.embedding_dim, self.max_length = own.embedding_dim, own.max_length

    @property
    def meter(self) -> Meter:
        """Of the run's encoder."""
        return self.reductions.encoder.meter

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32)."""
        own = self.reductions.encoder
        for start in range(0, len(texts), HEAD_TEXTS):
            part = texts[start : start + HEAD_TEXTS]
            states = self.reductions.of(part, instruction).to(own.device)
            with torch.inference_mode():
                vectors = vectors_without(self.reductions.pooler, states, self.left_out)
                vectors = F.normalize(vectors, dim=-1) if own.encoder.normalize else vectors
            yield list(range(start, start + len(part))), vectors.cpu().numpy()


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


NAME = "leave_one_layer_out"
MOST_COLUMNS = 12
TOP = 5


def answer(subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> Answer | None:
    """Score every multilayer encoder L + 1 times on the benchmark's tasks, from one forward pass a text.

    None where there is no multilayer encoder of two layers or more.
    """
    own = [s for s in subjects if s.config["pooler"]["name"] == "multilayer"]
    if not own:
        return None
    import pandas as pd

    print(f"{NAME}: {len(own)} encoders on {len(texts.task_set.tasks)} tasks, with all layers and without each.",
          file=sys.stderr, flush=True)  # fmt: skip
    made = []
    for subject in each(own, NAME, settings):
        if len(subject.encoder().encoder.pooler.layers) > 1:
            table = layer_drops(subject, texts.task_set, settings)
            made.append(table.assign(encoder=subject.design, seed=subject.seed))
    if not made:
        return None
    scores = pd.concat(made, ignore_index=True)
    found = {str(design): drops(table) for design, table in scores.groupby("encoder", sort=False)}
    over = f"over {scores['task'].nunique()} tasks of {texts.benchmark}"
    tables = [table.assign(encoder=design) for design, table in found.items()]
    return Answer(
        NAME,
        "One layer left out",
        [_grid(found, over)],
        lambda: [_drawing(found, over)],
        {NAME: pd.concat(tables, ignore_index=True), f"{NAME}_scores": scores},
        [
            "An intervention on the finished head: the layer's key is masked out of the softmax and nothing is trained "
            "again. A head trained without that layer could do better: a drop does not measure what the layer knows.",
            "Layers above were still computed from the one left out: only the head's own reading of it is cut.",
            "Intervals are not corrected for their number: of twenty, one leaves out zero by chance alone. They are "
            "of these encoders on other tasks.",
            *over_seeds(own),
        ],
    )


def _grid(found: dict[str, "pd.DataFrame"], over: str) -> Grid:
    layers = [list(dict.fromkeys(table["layer"])) for table in found.values()]
    wide = all(own == layers[0] for own in layers) and len(layers[0]) <= MOST_COLUMNS
    header = [f"Layer {layer}" for layer in layers[0]] if wide else [f"The {TOP} layers of the largest drop"]
    rows = []
    for label, table in found.items():
        for kind, own in table.groupby("type", sort=False):
            cells = [_cell(row) for row in own.itertuples()] if wide else [Cell(_top(own))]
            rows.append([Cell(label), Cell(str(kind)), Cell(score(own["whole"].iloc[0])), *cells])
    caption = (
        f"Score with all layers, and its drop when the head cannot read one of them (masked, no training), {over}. "
        f"Below it the {LEVEL:.0%} interval (Student's t over the tasks of the row, where there are several). Above "
        "zero: the layer was of use."
    )
    return Grid(NAME, caption, ["Encoder", "Type", "All layers", *header], rows, left=2, title="Drop without a layer")


def _cell(row: Any) -> Cell:
    return Cell(signed(row.drop), below=(f"{signed(row.low)} to {signed(row.high)}",) if row.tasks > 1 else ())


def _top(own: "pd.DataFrame") -> str:
    most = own.sort_values("drop", ascending=False, kind="stable").head(TOP)
    return ", ".join(f"{row.layer} ({signed(row.drop)})" for row in most.itertuples())


def _drawing(found: dict[str, "pd.DataFrame"], over: str) -> "Drawing":
    panels = {}
    for label, table in found.items():
        kinds, layers = list(dict.fromkeys(table["type"])), list(dict.fromkeys(table["layer"]))
        values = table.pivot(index="type", columns="layer", values="drop").loc[kinds, layers].to_numpy()
        panels[label] = Panel(values, kinds, layers)
    caption = (
        "Drop of the score when a multilayer head cannot read one layer (to the right; its key is masked, nothing is "
        f"trained again), mean by task type (downwards), {over}. Above zero: the layer was of use."
    )
    said = "; ".join(f"{label}: {_most(table)}" for label, table in found.items())
    words = Words(NAME, "Score lost without one layer", caption, f"Largest drop: {said}.")
    return heat_panels(words, panels, Look("", "layer left out", "drop in score", centre=0, digits=3))


def _most(table: "pd.DataFrame") -> str:
    last = table[table["type"] == table["type"].iloc[-1]]
    row = last.loc[last["drop"].idxmax()]
    return f"{signed(row['drop'])} ({row['type']}, layer {row['layer']})"
