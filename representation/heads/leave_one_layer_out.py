"""The loss of a multilayer head that cannot read one of its layers: an intervention without training."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from analysis.drawings.drawing import Drawing
from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from analysis.statistics.intervals import student_interval
from encoders.text_encoder import TextEncoder
from encoders.tokens import Batch
from evaluation.candidates import Candidate
from evaluation.embeddings import Embeddings
from evaluation.scoring import Options
from evaluation.scoring import score as score_candidate
from evaluation.tasks.chosen import TaskSet
from poolers.multilayer import MultiLayerTrainable
from records.fingerprint import of_value
from representation.encoders_studied import Studied, over_seeds
from representation.figures import MOST_PANELS, heat_panels, not_drawn, tables_of
from representation.heads.layer_columns import layer_columns
from representation.question import each
from representation.texts import Texts

PLACE = 60
NAME = "leave_one_layer_out"
FOLDER = "layers_left_out"  # in the cache: among a study's scores they would be taken for designs of it
LEVEL = 0.95
WHOLE = "none"  # in the place of a layer's number
HEAD_TEXTS = 512  # whose reductions run through the head at once


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
    """Score every multilayer encoder L + 1 times on the benchmark's tasks, from one forward pass per text.

    None where there is no multilayer encoder of two layers or more.
    """
    multilayer = [s for s in encoders if s.config["pooler"]["name"] == "multilayer"]
    if not multilayer:
        return None
    count = f"{len(multilayer)} encoders on {len(texts.task_set.tasks)} tasks"
    print(f"{NAME}: {count}, with all layers and without each.", file=sys.stderr, flush=True)
    tables = []
    for studied in each(multilayer, NAME, settings):
        if len(studied.encoder().encoder.pooler.layers) > 1:
            table = layer_drops(studied, texts.task_set, settings)
            tables.append(table.assign(encoder=studied.design, seed=studied.seed))
    if not tables:
        return None
    scores = pd.concat(tables, ignore_index=True)
    designs = [drops(table).assign(encoder=design) for design, table in scores.groupby("encoder", sort=False)]
    dropped, over = pd.concat(designs, ignore_index=True), f"over {scores['task'].nunique()} tasks of {texts.benchmark}"
    notes = [
        "An intervention on the finished head: the layer's key is masked out of the softmax and nothing is trained "
        "again. A head trained without that layer could do better: a drop does not measure what the layer knows.",
        "Layers above were still computed from the one left out: only the head's own reading of it is cut.",
        "Intervals are not corrected for their number: of twenty, one leaves out zero by chance alone. They are "
        "of these encoders on other tasks.",
        *over_seeds(multilayer),
    ]
    grids, frames = [_grid(dropped, over)], {NAME: dropped, f"{NAME}_scores": scores}
    return Answer(NAME, "One layer left out", grids, lambda: [_drawing(dropped, over)], frames, notes)


def vectors_without(pooler: MultiLayerTrainable, reductions: Tensor, left_out: int | None) -> Tensor:
    """Return [B, E] float32 of reductions [B, L, ...], as `pooler.reduce` made them, stacked.

    left_out: place of the layer whose keys have no weight in the softmax; the other weights grow in proportion. None:
    all layers are read.
    """
    kept = [i for i in range(reductions.shape[1]) if i != left_out]
    head = pooler.head
    if pooler.tokens == "all":
        parts = [reductions[:, i] for i in kept]
        return head.finish(head.merge([p[..., :-1] for p in parts], [p[..., -1:] for p in parts]))
    keys, asked = pooler.keys(reductions)
    return head(keys[:, kept], asked=None if asked is None else asked[:, kept])


class Reductions:
    """States that a multilayer head reads of each text, from one forward pass per text, kept while a run is studied.

    One vector a layer: L x D float32 a text (6 KB with the embedded base, 0.5 MB with a decoder of 7 B parameters).
    """

    def __init__(self, encoder: TextEncoder) -> None:
        pooler = encoder.encoder.pooler
        assert isinstance(pooler, MultiLayerTrainable)
        self.encoder, self.pooler = encoder, pooler
        self._rows: dict[tuple[str, str], Tensor] = {}

    def of(self, texts: Sequence[str], instruction: str) -> Tensor:
        """Return [N, L, ...] on the CPU; texts that are not here yet are encoded."""
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
    """A run's encoder without one of its layers, or with all of them, in the form that evaluation takes."""

    def __init__(self, reductions: Reductions, left_out: int | None) -> None:
        encoder = reductions.encoder
        self.reductions, self.left_out = reductions, left_out
        self.fingerprint = of_value([encoder.fingerprint, "layer left out", left_out])
        self.settings, self.sources = encoder.settings, encoder.sources
        self.embedding_dim, self.max_length, self.meter = encoder.embedding_dim, encoder.max_length, encoder.meter

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32)."""
        encoder = self.reductions.encoder
        for start in range(0, len(texts), HEAD_TEXTS):
            part = texts[start : start + HEAD_TEXTS]
            states = self.reductions.of(part, instruction).to(encoder.device)
            with torch.inference_mode():
                vectors = vectors_without(self.reductions.pooler, states, self.left_out)
                vectors = F.normalize(vectors, dim=-1) if encoder.encoder.normalize else vectors
            yield list(range(start, start + len(part))), vectors.cpu().numpy()


@dataclass(frozen=True)
class LeftOutCandidate(Candidate):
    """A run without a layer; vectors are made from the run's reductions in memory and are not kept on disk."""

    encoder: LayerLeftOut | None = None

    def embeddings(self, cache_dir: Path | None) -> Embeddings:
        """Return its vectors, which are not kept."""
        assert self.encoder is not None
        return Embeddings.of(self.encoder)


def layer_drops(studied: Studied, tasks: TaskSet, settings: dict[str, Any]) -> pd.DataFrame:
    """Return one row per (layer, task): `layer` "none" for the whole encoder, else the one left out, counted from 0.

    Columns layer, type, task, score. Scores lie in the cache, so that a second command finds them.
    """
    reductions = Reductions(studied.encoder())
    candidate = replace(studied.candidate, results=Path(settings["cache_dir"]) / FOLDER)
    facts = {field.name: getattr(candidate, field.name) for field in fields(candidate)}
    rows = []
    for place, name in [(None, WHOLE), *((i, str(k)) for i, k in enumerate(reductions.pooler.layers))]:
        without = LeftOutCandidate(**facts, encoder=LayerLeftOut(reductions, place))
        scores = score_candidate(without, tasks.tasks, Options(studied.instructions)).scores
        rows += [(name, kind, task, value) for task, (kind, value) in scores.items()]
    return pd.DataFrame(rows, columns=["layer", "type", "task", "score"])


def drops(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per (type, layer): score of the whole encoder, `drop` = whole - left out, its interval, tasks.

    scores: as of `layer_drops`; of several seeds each task has the mean. Student's t over tasks, nan with fewer than
    two. The type "All" is over all tasks, where there are several types. A drop above zero: the layer was of use.
    """
    table = scores.pivot_table(index="task", columns="layer", values="score")  # the mean over seeds
    kinds = scores.drop_duplicates("task").set_index("task")["type"]
    numbers = [layer for layer in dict.fromkeys(scores["layer"]) if layer != WHOLE]
    groups = {kind: list(kinds.index[kinds == kind]) for kind in dict.fromkeys(kinds)}
    groups |= {"All": list(kinds.index)} if len(groups) > 1 else {}
    rows = []
    for kind, tasks in groups.items():
        for layer in numbers:
            difference = (table.loc[tasks, WHOLE] - table.loc[tasks, layer]).to_numpy()
            (low,), (high,) = student_interval(difference[None], LEVEL)
            rows.append((kind, layer, table.loc[tasks, WHOLE].mean(), difference.mean(), low, high, len(tasks)))
    return pd.DataFrame(rows, columns=["type", "layer", "whole", "drop", "low", "high", "tasks"])


def _grid(dropped: pd.DataFrame, over: str) -> Grid:
    header, cells = layer_columns(dropped, "drop", "of the largest drop", signed, _interval)
    whole = dropped.groupby(["encoder", "type"])["whole"].first()
    rows = [[*map(Cell, key), Cell(score(whole[key])), *of_layers] for key, of_layers in cells.items()]
    caption = (
        f"Score with all layers, and its drop when the head cannot read one of them (masked, no training), {over}. "
        f"Below it the {LEVEL:.0%} interval (Student's t over the tasks of the row, where there are several). Above "
        "zero: the layer was of use."
    )
    return Grid(NAME, caption, ["Encoder", "Type", "All layers", *header], rows, left=2, title="Drop without a layer")


def _interval(row: Any) -> tuple[str, ...]:
    return (f"{signed(row.low)} to {signed(row.high)}",) if row.tasks > 1 else ()


def _drawing(dropped: pd.DataFrame, over: str) -> Drawing:
    panels = tables_of(dropped, "type", "layer", "drop")
    caption = (
        "Drop of the score when a multilayer head cannot read one layer (to the right; its key is masked, nothing is "
        f"trained again), mean by task type (downwards), {over}. Above zero: the layer was of use."
        f"{not_drawn(panels, MOST_PANELS)}"
    )
    last = {label: (table.index[-1], table.iloc[-1]) for label, table in panels.items()}  # over all types
    most = "; ".join(
        f"{label}: {signed(row.max())} ({kind}, layer {row.idxmax()})" for label, (kind, row) in last.items()
    )
    figure = heat_panels(panels, ("", "layer left out"), "drop in score", centre=0, digits=3)
    return Drawing(NAME, "Score lost without one layer", caption, f"Largest drop: {most}.", figure)
