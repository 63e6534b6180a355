"""The worth of each layer, and how layers resemble one another: tables, curves of scores, heat maps of similarity."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.heat import colour_bar
from analysis.drawings.style import GREY, MOST_DESIGNS
from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from evaluation.readings import read_by
from evaluation.tasks.chosen import TaskSet
from representation.encoders_studied import Decoder, Studied, decoders
from representation.figures import legend, likeness_map, look
from representation.layers.likeness import POOLINGS, layer_likeness, likeness_tables
from representation.readings import score_readings, type_means
from representation.texts import Texts

PLACE = 10
FOLDER = "layer_scores"  # in the cache: among a study's scores, layers would be taken for designs of it
BY = ["decoder", "pooling", "layer"]
CURVE_PANEL = 1.75, 1.7  # inches
MOST_STARTS = 4
DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)))
MAP_PANEL = 1.55  # inches
MEASURES = {"cka": "linear CKA", "cosine": "mean cosine"}
MOST_MAPS = 12  # decoders
MOST_WITH_NUMBERS = 8  # layers


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
    return Answer(
        "layers",
        "Layers",
        grids,
        lambda: [
            layer_curves(means, trained, over),
            *(layer_maps(within, pooling, texts.over) for pooling in POOLINGS),
        ],
        frames,
        _notes(texts, scores),
    )


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


def layer_curves(means: pd.DataFrame, trained: list[str], over: str) -> Drawing:
    """means: (decoder, pooling, layer) x type; trained: decoders that are runs, drawn full; starts are grey and dashed.

    over: words for the tasks. At most as many runs as there are marks are drawn, the first ones.
    """
    every = list(dict.fromkeys(means.index.get_level_values("decoder")))
    runs = [name for name in every if name in trained][:MOST_DESIGNS]
    starts = [name for name in every if name not in trained][:MOST_STARTS]
    poolings = [p for p in POOLINGS if p in means.index.get_level_values("pooling")]
    names = short_names([*runs, *starts])
    width = CURVE_PANEL[0] * len(means.columns) + inches(names.values()) + 0.7
    figure = canvas(width, CURVE_PANEL[1] * len(poolings) + 0.4)
    panels = figure.subplots(len(poolings), len(means.columns), sharex=True, sharey="col", squeeze=False)
    for (i, pooling), (j, kind) in product(enumerate(poolings), enumerate(means.columns)):
        scores, axes = means[kind].xs(pooling, level="pooling"), panels[i, j]
        for name, dashes in zip(starts, DASHES, strict=False):
            axes.plot(scores[name], color=GREY, linestyle=dashes, linewidth=1.1, label=names[name])
        for k, name in enumerate(runs):
            axes.plot(scores[name], **look(k, 3.5, 1), label=names[name])
        axes.grid(axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    for axes, pooling in zip(panels[:, 0], poolings, strict=True):
        axes.set_ylabel(f"score, {POOLINGS[pooling]}")
    for top, bottom, kind in zip(panels[0], panels[-1], means.columns, strict=True):
        top.set_title(kind)
        bottom.set_xlabel("layer")
    legend(figure, panels[0, 0], "outside right center", handlelength=2.6)
    left = f" The first {len(runs)} of the runs are drawn." if len(runs) + len(starts) < len(every) else ""
    read = " (above) and by ".join(f"the {POOLINGS[p]}" for p in poolings) + " (below)" * (len(poolings) > 1)
    caption = (
        f"Score of every layer on each task type, against the layer (0 is the first, the last one is taken after the "
        f"final norm), read by {read}, mean over seeds, on {over}; grey, dashed: the decoders before training.{left}"
    )
    best = means.mean(axis=1).groupby(level=["decoder", "pooling"], sort=False).idxmax()
    named = [f"{decoder}, {POOLINGS[pooling]}: layer {layer}" for decoder, pooling, layer in best if decoder in runs]
    alt = f"Lines of score against layer. Highest mean over types: {'; '.join(named[:12])}."
    return Drawing("layers_curves", "Layer curves", caption, alt, figure)


def layer_maps(within: pd.DataFrame, pooling: str, over: str) -> Drawing:
    """within: of `layer_likeness`, of which the layers read by `pooling` are drawn; over: which texts."""
    tables, reading = likeness_tables(within, pooling), POOLINGS[pooling]
    shown = list(tables)[:MOST_MAPS]
    names = short_names(shown, 20)
    figure = canvas(MAP_PANEL * len(shown) + 1.2, (MAP_PANEL + 0.2) * len(MEASURES) + 0.3)
    panels = figure.subplots(len(MEASURES), len(shown), squeeze=False)
    for row, (measure, words) in zip(panels, MEASURES.items(), strict=True):
        low = min(np.nanmin(tables[label][measure]) for label in shown)
        for axes, label in zip(row, shown, strict=True):
            table = tables[label][measure]
            few = len(table) <= MOST_WITH_NUMBERS
            mesh = likeness_map(axes, table, low, 4.5 if few else None)
            if few:
                axes.set_xticks(range(len(table)))
                axes.set_yticks(range(len(table)))
        row[0].set_ylabel("layer")
        colour_bar(figure, mesh, row, words, shrink=0.8)
    for top, bottom, label in zip(panels[0], panels[-1], shown, strict=True):
        top.set_title(names[label])
        bottom.set_xlabel("layer")
    left = f" The first {MOST_MAPS} of {len(tables)} decoders are drawn." if len(tables) > MOST_MAPS else ""
    caption = (
        f"Similarity of every two layers of a decoder, by linear CKA (above) and by the mean cosine of a text's two "
        f"vectors (below); a layer's vector of a text is the {reading}; mean over seeds; over {over}.{left}"
    )
    ends = [f"{label} {tables[label]['cka'][0, -1]:.2f}" for label in shown]
    alt = f"Heat maps, 1 on the diagonal. Linear CKA of the first and the last layer: {', '.join(ends)}."
    return Drawing(f"layers_likeness_{pooling}", f"Similarity of layers, {reading}", caption, alt, figure)
