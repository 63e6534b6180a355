"""The worth of each layer, and how layers resemble one another: tables, curves of scores, heat maps of similarity."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from evaluation.candidates.readings import read_by
from evaluation.tasks.chosen import TaskSet
from representation.encoders_studied import Decoder, Studied, decoders
from representation.layers.figures import layer_curves, layer_maps
from representation.layers.likeness import POOLINGS, layer_likeness, likeness_tables
from representation.readings import score_readings, type_means
from representation.texts import Texts

PLACE = 10
FOLDER = "layer_scores"  # in the cache: among a study's scores, layers would be taken for designs of it
BY = ["decoder", "pooling", "layer"]


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer:
    """Score every layer by mteb and compare layers over the sample of texts. Two forward passes per text at most."""
    distinct = decoders(encoders)
    scores = layer_scores(distinct, texts.task_set, settings)
    within, moved = layer_likeness(distinct, texts, settings)
    over, means = f"{scores['task'].nunique()} tasks of {texts.benchmark}", type_means(scores, BY)
    grids, frames = layer_grids(means, over), {"layers_scores": scores, "layers_likeness": within}
    if len(moved):
        grids.append(_moved_grid(moved, texts.over))
        frames["layers_moved"] = moved
    trained = [decoder.label for decoder in distinct if decoder.trained]

    def drawings() -> list[Drawing]:
        tables = {pooling: likeness_tables(within, pooling) for pooling in POOLINGS}
        maps = [layer_maps(f"layers_likeness_{p}", tables[p], words, texts.over) for p, words in POOLINGS.items()]
        return [layer_curves(means, trained, over), *maps]

    return Answer("layers", "Layers", grids, drawings, frames, _notes(texts, scores))


def layer_scores(distinct: Sequence[Decoder], tasks: TaskSet, settings: dict[str, Any]) -> pd.DataFrame:
    """Return one row per (decoder, seed, pooling, layer, task) with its type and score, mteb's own.

    All layers come from one forward pass per text, and what was scored before is not scored again.
    """
    place = Path(settings["cache_dir"]) / FOLDER
    names = [f"layer:*/{pooling}" for pooling in POOLINGS]
    labelled = [
        (decoder.label, replace(reading, results=place))
        for decoder in distinct
        for reading in read_by([studied.candidate for studied in decoder.seeds], names)
    ]
    labels, readings = zip(*labelled, strict=True)
    rows = []
    for reading, kind, task, value in score_readings(readings, tasks, settings, "Layers"):
        layer, _, pooling = reading.reading.removeprefix("layer:").partition("/")
        label = labels[readings.index(reading)]
        rows.append((label, reading.manifest["seed"], pooling, int(layer), kind, task, value))
    return pd.DataFrame(rows, columns=["decoder", "seed", "pooling", "layer", "type", "task", "score"])


def layer_grids(means: pd.DataFrame, over: str) -> list[Grid]:
    """Return the score of every layer, and the best layer of each type. means: (decoder, pooling, layer) x type.

    over: words for the tasks, `5 tasks of benchmark docs_dev`.
    """
    layers = sorted(means.index.get_level_values("layer").unique())
    scores, best = [], []
    for decoder, pooling in dict.fromkeys((decoder, pooling) for decoder, pooling, _ in means.index):
        by_layer = means.loc[decoder, pooling].sort_index()
        whole = by_layer.mean(axis=1)
        style = dict(zip(whole.sort_values(ascending=False, kind="stable").index, ("best", "second"), strict=False))
        first = [Cell(decoder), Cell(POOLINGS[pooling])]
        scores.append([*first, *(Cell(score(whole[layer]), style.get(layer, "")) for layer in layers)])
        cells = [Cell(f"{score(column.max())} ({column.idxmax()})") for _, column in by_layer.items()]
        best.append([*first, *cells, Cell(signed(by_layer.iloc[-1].mean() - whole.max()))])
    caption = (
        f"Mean over task types of the score of each layer, read without parameters, on {over}. "
        "The best and second best layer of each row are set off."
    )
    best_caption = (
        f"The highest score of any layer on each task type, and in brackets which layer has it, on {over}; "
        "last column: the last layer's mean over types minus that of the best layer. A maximum over layers is no fair "
        "score of a design, since it is chosen on the tasks that it is measured on."
    )
    best_header = ["Decoder", "Reading", *means.columns, "Last - best"]
    return [
        Grid("layers-scores", caption, _header("Decoder", layers), scores, left=2, title="Score of each layer"),
        Grid("layers-best", best_caption, best_header, best, left=2, title="Best layer of each task type"),
    ]


def _header(first: str, layers: Sequence[int]) -> list[str]:
    return [first, "Reading", *(f"Layer {layer}" for layer in layers)]


def _moved_grid(moved: pd.DataFrame, over: str) -> Grid:
    means = moved.groupby(BY, sort=False)[["cka", "cosine"]].mean()
    layers = sorted(moved["layer"].unique())
    rows = []
    for decoder, pooling in dict.fromkeys(zip(moved["decoder"], moved["pooling"], strict=True)):
        part = means.loc[decoder, pooling]
        cells = [Cell(score(part["cka"][layer], 3), below=(score(part["cosine"][layer], 3),)) for layer in layers]
        rows.append([Cell(decoder), Cell(POOLINGS[pooling]), *cells])
    caption = (
        "Each layer of a run against the same layer of its untrained start: linear CKA of their vectors, below it the "
        f"mean cosine of a text's two vectors; mean over seeds; over {over}."
    )
    return Grid(
        "layers-moved", caption, _header("Run", layers), rows, left=2, title="How far training moved each layer"
    )


def _notes(texts: Texts, scores: pd.DataFrame) -> list[str]:
    tasks = [f"{kind} {count}" for kind, count in scores.groupby("type")["task"].nunique().items()]
    return [
        f"Scores of layers are mteb's own on {texts.benchmark}, tasks a type: {', '.join(tasks)}. Differences between "
        "layers are shown, not tested: python evaluate.py readings=[...] gives scores that python -m analysis tests.",
        f"Linear CKA (Kornblith et al. 2019) is over {len(texts.every)} texts; with fewer texts than dimensions it is "
        "biased upwards.",
        "Untrained starts that differ in the head alone have the same layers and are there once.",
    ]
